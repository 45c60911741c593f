"""The token fields of a record, by name."""

from typing import Final

TOKEN_FIELDS: Final = ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts")
PROMPT, GENERATION, LOG_PROBS, ROUTED_EXPERTS = TOKEN_FIELDS
ID_FIELDS: Final = (PROMPT, GENERATION)
ARRAY_FIELDS: Final = (PROMPT, GENERATION, LOG_PROBS)  # every record has these three
LOSS_MASK: Final = "generation_loss_mask"  # an extra field: which of the generated tokens the policy sampled
