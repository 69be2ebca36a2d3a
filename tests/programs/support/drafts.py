"""Draft models of the real `speculators`, tiny and random, with what their forward takes. No verifier is loaded."""
import torch
from speculators.config import SpeculatorsConfig, VerifierConfig
from speculators.losses import resolve_loss_config
from speculators.models.dflash import DFlashDraftModel, DFlashSpeculatorConfig
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from speculators.proposals.greedy import GreedyTokenProposalConfig
from transformers import LlamaConfig, Qwen3Config

SIZES = dict(vocab_size=128, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128, head_dim=16,
             num_hidden_layers=2)
LENGTH = 128


def _speculation(algorithm):
    return SpeculatorsConfig(algorithm=algorithm, proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=3)],
                             default_proposal_method="greedy",
                             verifier=VerifierConfig(name_or_path=None, architectures=["LlamaForCausalLM"]))


def _ready(model):
    """Weights that a checkpoint would have brought."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.02)
    return model.eval()


def eagle3(attention=None):
    """Nothing is selected by the caller unless `attention` is given: the model selects its own simple_flex_attention."""
    config = LlamaConfig(**SIZES)
    config._attn_implementation = attention
    model = Eagle3DraftModel(Eagle3SpeculatorConfig(transformer_layer_config=config, draft_vocab_size=128,
                                                    speculators_config=_speculation("eagle3")))
    batch = dict(hidden_states=torch.randn(1, LENGTH, 3 * 64), input_ids=torch.arange(LENGTH)[None],
                 document_ids=torch.zeros(1, LENGTH, dtype=torch.long))
    return _ready(model), batch


def dflash():
    model = DFlashDraftModel(DFlashSpeculatorConfig(transformer_layer_config=Qwen3Config(**SIZES), draft_vocab_size=128, block_size=8,
                                                    aux_hidden_state_layer_ids=[0, 1], mask_token_id=0,
                                                    speculators_config=_speculation("dflash")))
    batch = dict(hidden_states=torch.randn(1, LENGTH, 2 * 64), input_ids=torch.arange(LENGTH)[None],
                 loss_mask=torch.ones(1, LENGTH), document_ids=torch.zeros(1, LENGTH, dtype=torch.long),
                 verifier_last_hidden_states=torch.randn(1, LENGTH, 64), max_anchors=16,
                 loss_config=resolve_loss_config("kl_div", "eager"))  # the fused loss is a Triton kernel
    return _ready(model), batch
