// Elements, and how numbers are written. Text reaches the page as text nodes alone.

const byId = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const span = (look, ...children) => make("span", { class: look }, ...children);

const button = (attributes, act, name) => make("button", { type: "button", ...attributes, on: { click: act } }, name);

const heads = (names) => make("tr", {}, names.map((name) => make("th", { scope: "col" }, name)));

const cells = (values) => values.map((value) => make("td", {}, value));

const embedded = (id) => JSON.parse(byId(id).textContent);

const count = (value) => value.toLocaleString("en-US");

const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "0 %");

// What is read out, or copied, word by word.
const spaced = (words) => words.filter(Boolean).flatMap((word) => [word, " "]);
