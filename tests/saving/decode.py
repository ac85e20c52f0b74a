"""Decode: 1.1 billion parameters and a cache; a replay makes the next token from the last."""
import torch

import expected
import marks
import model

torch.manual_seed(0)
with torch.no_grad():
    decoder = model.Cached(layers=16, width=2048, heads=32, kv_heads=8, hidden=8192, positions=2048, words=32000)
    token = torch.zeros(1, dtype=torch.long, device="cuda")
    position = torch.zeros(1, dtype=torch.long, device="cuda")
    tokens = torch.zeros(2048, dtype=torch.long, device="cuda")

    def step():
        logits = decoder(token, position)
        token.copy_(logits.argmax(-1))
        tokens.index_copy_(0, position, token)
        position.add_(1)
        return logits

    marks.input("token", token)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = step()
        marks.output("token", token)
        marks.output("logits", logits)
        marks.output("tokens", tokens)
marks.dead()

made = expected.Graph("decode", graph.replay, {"token": token}, {"token": torch.full_like(token, 12345)},
                      {"logits": logits, "tokens": tokens}, [position, tokens], decoder.tensors(), replays=200)
expected.write([made], expected.Torch())
