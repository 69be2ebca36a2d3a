"""Models of Transformers of every kind, tiny and random: NAME -> (model class, configuration, batch).

A batch is what forward takes; nothing is downloaded, and no dropout is left, so that two runs of one model do the same.
"""
import torch
import transformers as hf

TEXT = dict(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
GROUPED = dict(TEXT, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
ENCODER = dict(TEXT, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=128, pad_token_id=0)
PATCHES = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=32, patch_size=8)
SEQ2SEQ = dict(vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=128, dropout=0.0, attention_dropout=0.0,
               activation_dropout=0.0, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
               forced_eos_token_id=None)
SPEECH = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, conv_dim=(32, 32), conv_stride=(5, 4),
              conv_kernel=(10, 8), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, hidden_dropout=0.0,
              attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, layerdrop=0.0, mask_time_prob=0.0,
              apply_spec_augment=False)

IDS = torch.arange(2 * 32).reshape(2, 32) % 100 + 10
IMAGE = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)
WAVE = torch.linspace(-1, 1, 2 * 800).reshape(2, 800).sin()


def _text():
    return dict(input_ids=IDS)


def _both():
    return dict(input_ids=IDS, decoder_input_ids=IDS[:, :24])


def _padded():
    mask = torch.ones_like(IDS)
    mask[1, 20:] = 0
    return dict(input_ids=IDS, attention_mask=mask)


def _image():
    return dict(pixel_values=IMAGE)


def _wave():
    return dict(input_values=WAVE)


def _image_text(token, count):
    ids = torch.cat([torch.full((2, count), token), IDS[:, :16]], dim=1)
    return dict(input_ids=ids, pixel_values=IMAGE)


def _decoders():
    yield "llama", hf.LlamaForCausalLM, hf.LlamaConfig(**GROUPED), _text()
    yield "llama-padded", hf.LlamaForCausalLM, hf.LlamaConfig(**GROUPED), _padded()
    yield "qwen3", hf.Qwen3ForCausalLM, hf.Qwen3Config(**GROUPED, head_dim=16), _text()
    yield "mistral-sliding", hf.MistralForCausalLM, hf.MistralConfig(**GROUPED, sliding_window=8), _text()
    yield "gemma2-softcap", hf.Gemma2ForCausalLM, hf.Gemma2Config(**GROUPED, head_dim=16, sliding_window=8), _text()
    yield "gemma3-text", hf.Gemma3ForCausalLM, hf.Gemma3TextConfig(**GROUPED, head_dim=16, sliding_window=8), _text()
    yield "gpt2", hf.GPT2LMHeadModel, hf.GPT2Config(vocab_size=128, n_positions=64, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0,
                                                    embd_pdrop=0.0, attn_pdrop=0.0), _text()
    yield "gpt-neo", hf.GPTNeoForCausalLM, hf.GPTNeoConfig(vocab_size=128, hidden_size=64, num_layers=2, num_heads=4, window_size=8,
                                                           attention_types=[[["global", "local"], 1]], max_position_embeddings=64,
                                                           attention_dropout=0.0, resid_dropout=0.0, embed_dropout=0.0), _text()
    yield "gptj", hf.GPTJForCausalLM, hf.GPTJConfig(vocab_size=128, n_embd=64, n_layer=2, n_head=4, n_positions=64, rotary_dim=8,
                                                    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), _text()
    yield "gpt-neox", hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(**TEXT, max_position_embeddings=64), _text()
    yield "opt", hf.OPTForCausalLM, hf.OPTConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128,
                                                 max_position_embeddings=64, dropout=0.0, word_embed_proj_dim=64), _text()
    yield "bloom-alibi", hf.BloomForCausalLM, hf.BloomConfig(vocab_size=128, hidden_size=64, n_layer=2, n_head=4), _text()
    yield "falcon", hf.FalconForCausalLM, hf.FalconConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4), _text()
    yield "mpt-alibi", hf.MptForCausalLM, hf.MptConfig(vocab_size=128, d_model=64, n_layers=2, n_heads=4, max_seq_len=64), _text()
    yield "phi3", hf.Phi3ForCausalLM, hf.Phi3Config(**GROUPED), _text()
    yield "deepseek-v3-mla", hf.DeepseekV3ForCausalLM, hf.DeepseekV3Config(
        **dict(GROUPED, num_key_value_heads=4), moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1,
        kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=16, first_k_dense_replace=1), _text()


def _experts():
    yield "mixtral", hf.MixtralForCausalLM, hf.MixtralConfig(**GROUPED, num_local_experts=4), _text()
    yield "qwen2-moe", hf.Qwen2MoeForCausalLM, hf.Qwen2MoeConfig(**GROUPED, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                                                                shared_expert_intermediate_size=32), _text()
    yield "gpt-oss-sinks", hf.GptOssForCausalLM, hf.GptOssConfig(**GROUPED, head_dim=16, num_local_experts=4, num_experts_per_tok=2,
                                                                sliding_window=8), _text()


def _linear():
    yield "mamba2", hf.Mamba2ForCausalLM, hf.Mamba2Config(vocab_size=128, hidden_size=64, num_hidden_layers=2, state_size=16, num_heads=8,
                                                          head_dim=16, n_groups=1, chunk_size=16), _text()
    yield "jamba", hf.JambaForCausalLM, hf.JambaConfig(**GROUPED, num_experts=2, attn_layer_period=2, attn_layer_offset=1,
                                                       expert_layer_period=2, expert_layer_offset=1, use_mamba_kernels=False), _text()
    yield "bamba", hf.BambaForCausalLM, hf.BambaConfig(**GROUPED, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16,
                                                       mamba_n_groups=1, mamba_chunk_size=16), _text()
    yield "qwen3-next", hf.Qwen3NextForCausalLM, hf.Qwen3NextConfig(
        **GROUPED, head_dim=16, layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2, linear_num_value_heads=2,
        linear_key_head_dim=16, linear_value_head_dim=16, num_experts=2, num_experts_per_tok=1, moe_intermediate_size=32,
        shared_expert_intermediate_size=32), _text()
    yield "recurrent-gemma", hf.RecurrentGemmaForCausalLM, hf.RecurrentGemmaConfig(
        **dict(GROUPED, num_hidden_layers=3), lru_width=64, attention_window_size=8, block_types=("recurrent", "recurrent", "attention")), _text()
    yield "fnet", hf.FNetModel, hf.FNetConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, intermediate_size=128,
                                              hidden_dropout_prob=0.0, max_position_embeddings=64), _text()


def _encoders():
    yield "bert", hf.BertForMaskedLM, hf.BertConfig(**ENCODER), _text()
    yield "roberta-padded", hf.RobertaForMaskedLM, hf.RobertaConfig(**ENCODER), _padded()
    yield "distilbert", hf.DistilBertForMaskedLM, hf.DistilBertConfig(vocab_size=128, dim=64, n_layers=2, n_heads=4, hidden_dim=128, dropout=0.0,
                                                                     attention_dropout=0.0), _text()
    yield "deberta", hf.DebertaModel, hf.DebertaConfig(**ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"]), _text()
    yield "deberta-v2", hf.DebertaV2Model, hf.DebertaV2Config(**ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"]), _text()
    yield "longformer", hf.LongformerModel, hf.LongformerConfig(**ENCODER, attention_window=16), _text()
    yield "big-bird-full", hf.BigBirdModel, hf.BigBirdConfig(**ENCODER, attention_type="original_full"), _text()
    yield "modernbert", hf.ModernBertModel, hf.ModernBertConfig(**GROUPED, local_attention=8, cls_token_id=1, sep_token_id=2), _text()
    yield "xlnet", hf.XLNetModel, hf.XLNetConfig(vocab_size=128, d_model=64, n_layer=2, n_head=4, d_inner=128, dropout=0.0), _text()
    yield "esm", hf.EsmModel, hf.EsmConfig(**ENCODER, position_embedding_type="rotary", mask_token_id=3), _text()


def _both_sides():
    yield "t5-bias", hf.T5ForConditionalGeneration, hf.T5Config(vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                                                               dropout_rate=0.0, decoder_start_token_id=0), _both()
    yield "bart", hf.BartForConditionalGeneration, hf.BartConfig(**SEQ2SEQ), _both()
    yield "marian", hf.MarianMTModel, hf.MarianConfig(**SEQ2SEQ), _both()
    yield "led", hf.LEDForConditionalGeneration, hf.LEDConfig(
        **{key: value for key, value in SEQ2SEQ.items() if key not in ("max_position_embeddings", "forced_eos_token_id")},
        max_encoder_position_embeddings=128, max_decoder_position_embeddings=128, attention_window=16), _both()


def _images():
    yield "vit", hf.ViTForImageClassification, hf.ViTConfig(**PATCHES), _image()
    yield "dinov2", hf.Dinov2Model, hf.Dinov2Config(**{key: value for key, value in PATCHES.items() if key != "intermediate_size"}), _image()
    yield "siglip-vision", hf.SiglipVisionModel, hf.SiglipVisionConfig(**PATCHES), _image()
    yield "beit-bias", hf.BeitModel, hf.BeitConfig(**PATCHES, use_relative_position_bias=True, drop_path_rate=0.0), _image()
    yield "swin", hf.SwinModel, hf.SwinConfig(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4,
                                              drop_path_rate=0.0), _image()
    yield "segformer", hf.SegformerModel, hf.SegformerConfig(depths=[1, 1], hidden_sizes=[16, 32], num_attention_heads=[1, 2], sr_ratios=[2, 1],
                                                             num_encoder_blocks=2, patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2],
                                                             hidden_dropout_prob=0.0, drop_path_rate=0.0), _image()


def _sounds():
    yield "wav2vec2", hf.Wav2Vec2Model, hf.Wav2Vec2Config(**SPEECH), _wave()
    yield "wavlm-bias", hf.WavLMModel, hf.WavLMConfig(**SPEECH), _wave()
    yield "whisper", hf.WhisperForConditionalGeneration, hf.WhisperConfig(
        **{key: value for key, value in SEQ2SEQ.items() if key not in ("max_position_embeddings", "forced_eos_token_id")}, num_mel_bins=8,
        max_source_positions=32, max_target_positions=64), dict(input_features=torch.linspace(-1, 1, 2 * 8 * 64).reshape(2, 8, 64),
                                                                decoder_input_ids=IDS[:, :16])
    yield "ast", hf.ASTModel, hf.ASTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, max_length=32,
                                           num_mel_bins=16, patch_size=8), dict(input_values=torch.linspace(-1, 1, 2 * 32 * 16).reshape(2, 32, 16))


def _mixed():
    vision = hf.CLIPVisionConfig(**PATCHES)
    yield "clip", hf.CLIPModel, hf.CLIPConfig(
        text_config=dict(TEXT, max_position_embeddings=64, eos_token_id=2, bos_token_id=1, pad_token_id=0), vision_config=vision.to_dict(),
        projection_dim=32), dict(input_ids=IDS, pixel_values=IMAGE)
    yield "llava", hf.LlavaForConditionalGeneration, hf.LlavaConfig(vision_config=vision, text_config=hf.LlamaConfig(**GROUPED),
                                                                    image_token_index=127), _image_text(127, 16)
    yield "paligemma", hf.PaliGemmaForConditionalGeneration, hf.PaliGemmaConfig(
        vision_config=hf.SiglipVisionConfig(**PATCHES, projection_dim=64), text_config=hf.GemmaConfig(**GROUPED, head_dim=16),
        image_token_index=127, projection_dim=64), dict(_image_text(127, 16), token_type_ids=torch.zeros(2, 32, dtype=torch.long))
    yield "blip", hf.BlipForConditionalGeneration, hf.BlipConfig(
        text_config=dict(TEXT, encoder_hidden_size=64, max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                         bos_token_id=1, eos_token_id=2, sep_token_id=2, pad_token_id=0, projection_dim=32),
        vision_config=dict(PATCHES, projection_dim=32)), dict(input_ids=IDS, pixel_values=IMAGE)
    yield "perceiver", hf.PerceiverForMaskedLM, hf.PerceiverConfig(
        vocab_size=128, d_model=64, d_latents=64, num_latents=16, num_blocks=1, num_self_attends_per_block=2, num_self_attention_heads=4,
        num_cross_attention_heads=4, max_position_embeddings=32, attention_probs_dropout_prob=0.0), dict(inputs=IDS)


def cases():
    for kind in (_decoders, _experts, _linear, _encoders, _both_sides, _images, _sounds, _mixed):
        yield from kind()
