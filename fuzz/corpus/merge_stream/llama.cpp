data: {"index": 0, "content": "o", "tokens": [41], "stop": false, "tokens_predicted": 1}

data: {"content": "o", "tokens": [41], "completion_probabilities": [{"token": "token_id:41", "logprob": -0.5, "bytes": [111], "top_logprobs": [], "id": 41}], "stop": false, "timings": {}}

data: {"index": 0, "content": "o", "tokens": [41], "stop": false, "tokens_predicted": 1}

data: {"index": 0, "content": "o", "tokens": [41], "stop": false, "tokens_predicted": 1}

data: [DONE]

