// Which view is seen: the part of the address behind # says it, so that a link leads to a token.

const ROWS = embedded("rows");
const table = new RolloutTable(ROWS, byId("list"));
let view = null;

for (const each of document.querySelectorAll("[data-code]")) {
  each.addEventListener("click", () => table.filter("finding", each.dataset.code));
}
for (const each of document.querySelectorAll("[data-reason]")) {
  each.addEventListener("click", () => table.filter("trainable", each.dataset.reason));
}

byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view is seen
  byId("top").focus();
});

async function show() {
  const address = location.hash;
  const [place, call, position] = address.split("/").slice(1).filter(Boolean).map(Number);
  const isOpen = place in ROWS;
  view?.close();
  view = null;
  if (isOpen) {
    const details = await readRollout(place);
    if (location.hash !== address) return; // another one was asked for meanwhile
    byId("overview").hidden = true;
    byId("rollout").hidden = false;
    view = new RolloutView(place, ROWS[place], details, byId("rollout"));
    if (call in details.calls) view.open(call, position >= 0 ? position : null);
  } else {
    byId("rollout").hidden = true;
    byId("rollout").replaceChildren();
    byId("overview").hidden = false;
  }
  byId("crumbs").replaceChildren(...(isOpen ? crumbs(place) : []));
  if (isOpen && !(position >= 0)) byId("rollout-title").focus();
  document.body.dataset.ready = location.hash; // says to who drives the page that this view is drawn
}

function crumbs(place) {
  const link = (to, name) => (to in ROWS ? make("a", { href: `#/${to}` }, name) : span("dim", name));
  const all = make("a", { href: "#/" }, "All rollouts");
  const which = span("dim", `${place + 1} of ${count(ROWS.length)}`);
  return [all, link(place - 1, "Previous"), link(place + 1, "Next"), which];
}

addEventListener("hashchange", show);
show();
