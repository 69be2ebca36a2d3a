"""Tiny, randomly initialised Transformers models: a model in training mode and one batch for it, deterministic."""
import torch
import transformers as hf

TEXT = dict(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
GROUPED = dict(TEXT, num_key_value_heads=2)


def _make(factory, config, attention):
    torch.manual_seed(0)
    return factory._from_config(config, attn_implementation=attention).train()


def tokens(rows=2, length=32):
    ids = torch.arange(rows * length).reshape(rows, length) % 128
    return dict(input_ids=ids, labels=ids)


def llama(attention, **changes):
    return _make(hf.LlamaForCausalLM, hf.LlamaConfig(**{**GROUPED, **changes}), attention), tokens()


def qwen3(attention, **changes):
    return _make(hf.Qwen3ForCausalLM, hf.Qwen3Config(**{**GROUPED, "head_dim": 16, **changes}), attention), tokens()


def mixtral(attention, **changes):
    config = hf.MixtralConfig(**{**GROUPED, "num_local_experts": 4, **changes})
    return _make(hf.MixtralForCausalLM, config, attention), tokens()


def gpt2(attention, **changes):
    config = hf.GPT2Config(vocab_size=128, n_positions=64, n_embd=64, n_layer=2, n_head=4, **{**NO_DROPOUT_GPT2, **changes})
    return _make(hf.GPT2LMHeadModel, config, attention), tokens()


def bert(attention, **changes):
    no_dropout = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return _make(hf.BertForMaskedLM, hf.BertConfig(**{**TEXT, **no_dropout, **changes}), attention), tokens()


def vit(attention, **changes):
    small = {key: value for key, value in TEXT.items() if key != "vocab_size"}
    config = hf.ViTConfig(**{**small, "image_size": 32, "patch_size": 8, **changes})
    return (_make(hf.ViTForImageClassification, config, attention),
            dict(pixel_values=torch.linspace(0, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32), labels=torch.tensor([0, 1])))


def whisper(attention, **changes):
    config = hf.WhisperConfig(vocab_size=128, num_mel_bins=8, d_model=64, encoder_layers=2, decoder_layers=2,
                              encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
                              max_source_positions=32, max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                              decoder_start_token_id=1, **changes)
    batch = dict(input_features=torch.linspace(-1, 1, 2 * 8 * 64).reshape(2, 8, 64), labels=tokens(2, 16)["labels"])
    return _make(hf.WhisperForConditionalGeneration, config, attention), batch


NO_DROPOUT_GPT2 = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
