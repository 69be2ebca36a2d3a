"""A small trainer over randomly initialised Transformers models; nothing is downloaded.

    attntrace -- python train.py                 everything fused: nothing to report
    attntrace -- python train.py --wrong-turns   three usual ways to lose the fused kernel, none of them an error
"""
import argparse

import torch
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

SIZES = dict(vocab_size=512, hidden_size=128, num_attention_heads=4, intermediate_size=256)


class DraftHead(torch.nn.Module):
    """One attention layer over the target's hidden states, as draft models for speculative decoding have it."""

    def __init__(self, config):
        super().__init__()
        self.rotary = LlamaRotaryEmbedding(config)
        self.attention = LlamaAttention(config, layer_idx=0)

    def forward(self, hidden):
        positions = torch.arange(hidden.shape[1]).unsqueeze(0)
        return self.attention(hidden, position_embeddings=self.rotary(hidden, positions), attention_mask=None)[0]


def build(wrong):
    torch.manual_seed(0)
    # Wrong turn 1: dropout inside attention. No fused CPU kernel has it.
    target_config = LlamaConfig(num_hidden_layers=2, num_key_value_heads=2, attention_dropout=0.1 if wrong else 0.0, **SIZES)
    target = LlamaForCausalLM._from_config(target_config, attn_implementation="sdpa")
    # Wrong turn 2: a layer built from a config of its own, for which nobody has selected an implementation.
    draft = DraftHead(LlamaConfig(num_key_value_heads=2, **SIZES) if wrong else target.config)
    # Wrong turn 3: attention maps, which only attention that stores its scores can return.
    judge_config = BertConfig(num_hidden_layers=2, attention_probs_dropout_prob=0.0, output_attentions=wrong, **SIZES)
    judge = BertForSequenceClassification._from_config(judge_config, attn_implementation="eager" if wrong else "sdpa")
    return target.train(), draft.train(), judge.train()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong-turns", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()

    target, draft, judge = build(arguments.wrong_turns)
    parameters = [*target.parameters(), *draft.parameters(), *judge.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=1e-3)
    tokens = torch.randint(512, (2, 256))
    labels = torch.tensor([0, 1])
    for step in range(arguments.steps):
        out = target(input_ids=tokens, labels=tokens, output_hidden_states=True)
        drafted = draft(out.hidden_states[-1])
        judged = judge(input_ids=tokens, labels=labels)
        loss = out.loss + drafted.square().mean() + judged.loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
