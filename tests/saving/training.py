"""A step of training with Adam, whose state a replay moves on."""
import torch
import torch.nn.functional as F

import expected
import marks

torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.LayerNorm(1024), torch.nn.Linear(1024, 1024), torch.nn.GELU(),
    torch.nn.Linear(1024, 10)).cuda()
adam = torch.optim.Adam(network.parameters(), 1e-3, capturable=True)
x = torch.randn(256, 512, device="cuda")
labels = torch.randint(0, 10, (256,), device="cuda")
marks.input("x", x)
marks.input("labels", labels)


def step():
    adam.zero_grad(set_to_none=True)
    loss = F.cross_entropy(network(x), labels)
    loss.backward()
    adam.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
adam.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = step()
    marks.output("loss", loss)
    marks.output("weight", network[0].weight)
marks.dead()

state = list(network.parameters()) + [tensor for one in adam.state.values() for tensor in one.values()]
expected.write(
    [expected.Graph("training", graph.replay, {"x": x, "labels": labels},
                    {"x": torch.randn_like(x), "labels": torch.randint_like(labels, 0, 10)},
                    {"loss": loss, "weight": network[0].weight}, state, replays=100)], expected.Torch())
