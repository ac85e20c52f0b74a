"""Decoder models of PyTorch: a stack of blocks over whole sequences, and one with a cache that makes a token a step."""
import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        self.head_width = width // heads
        self.split = [width, kv_heads * self.head_width, kv_heads * self.head_width]
        self.attention_norm, self.hidden_norm = torch.nn.RMSNorm(width), torch.nn.RMSNorm(width)
        self.qkv = torch.nn.Linear(width, sum(self.split), bias=False)
        self.projection = torch.nn.Linear(width, width, bias=False)
        self.gate_up = torch.nn.Linear(width, 2 * hidden, bias=False)
        self.down = torch.nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        heads = [part.unflatten(-1, (-1, self.head_width)).transpose(1, 2)
                 for part in self.qkv(self.attention_norm(x)).split(self.split, -1)]
        attention = F.scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True)
        x = x + self.projection(attention.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.hidden_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def stack(layers=8, width=1024, heads=16, kv_heads=4, hidden=2816):
    blocks = torch.nn.Sequential(*[Block(width, heads, kv_heads, hidden) for _ in range(layers)])
    return blocks.to("cuda", torch.bfloat16).eval()


class Cached:
    """Weights are random. The cache has the rows of positions; each call reads those up to its own."""

    def __init__(self, layers, width, heads, kv_heads, hidden, positions, words):
        def random(*shape, scale=0.02):
            return torch.randn(shape, device="cuda", dtype=torch.bfloat16) * scale

        self.width, self.heads, self.kv_heads, self.head_width = width, heads, kv_heads, width // heads
        self.words, self.places = random(words, width, scale=1), random(positions, width, scale=1)
        self.head = random(words, width)
        kv_width = kv_heads * self.head_width
        self.split = [width, kv_width, kv_width]
        self.layers = [
            dict(qkv=random(sum(self.split), width), projection=random(width, width),
                 gate_up=random(2 * hidden, width), down=random(width, hidden),
                 k=torch.zeros(1, kv_heads, positions, self.head_width, device="cuda", dtype=torch.bfloat16),
                 v=torch.zeros(1, kv_heads, positions, self.head_width, device="cuda", dtype=torch.bfloat16))
            for _ in range(layers)]
        self.rows = torch.arange(positions, device="cuda")

    def tensors(self):
        return [self.words, self.places, self.head, *(tensor for layer in self.layers for tensor in layer.values())]

    def attend(self, q, k, v, mask):
        """By matrix products. cuDNN's attention, which PyTorch takes for one query, splits the keys over blocks and
        adds up in no fixed order: a loop of 200 tokens does not give the same ones twice."""
        count, group = q.shape[2], self.heads // self.kv_heads
        scores = q.reshape(1, self.kv_heads, group * count, self.head_width) @ k.transpose(2, 3)
        scores = (scores * self.head_width ** -0.5).unflatten(2, (group, count)).masked_fill(~mask, float("-inf"))
        return (scores.softmax(-1).flatten(2, 3) @ v).view(1, self.heads, count, self.head_width)

    def __call__(self, tokens, positions):
        """Logits of the last of `tokens`, which stand at `positions`; both of one extent."""
        count = tokens.shape[0]
        mask = self.rows.view(1, 1, 1, 1, -1) <= positions.view(1, 1, 1, count, 1)
        x = self.words[tokens] + self.places[positions]
        for layer in self.layers:
            q, k, v = (part.view(1, count, -1, self.head_width).transpose(1, 2)
                       for part in F.linear(F.rms_norm(x, (self.width,)), layer["qkv"]).split(self.split, -1))
            layer["k"].index_copy_(2, positions, k)
            layer["v"].index_copy_(2, positions, v)
            attention = self.attend(q, layer["k"], layer["v"], mask)
            x = x + F.linear(attention.transpose(1, 2).reshape(count, self.width), layer["projection"])
            gate, up = F.linear(F.rms_norm(x, (self.width,)), layer["gate_up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer["down"])
        return F.linear(F.rms_norm(x[-1:], (self.width,)), self.head)
