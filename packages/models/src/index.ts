export { type ActivationName, activationNames } from "./activation.js";
export {
  BertForMaskedLM,
  BertForSequenceClassification,
  BertForTokenClassification,
  type BertLabelOptions,
  type BertTaggingOptions,
  type MaskedLMInputs,
} from "./bert/heads.js";
export { type BertInputs, BertModel } from "./bert/model.js";
export type { BertConfig, BertOptions } from "./bert/options.js";
export { type BertConfigOptions, bertOptionsOf, type ConfigSource } from "./config/bert-config.js";
export { ConfigError } from "./config/config-error.js";
export { ConfigFields } from "./config/config-fields.js";
export { type DescribedModel, requireEnoughWeights } from "./config/enough-weights.js";
export { type GPTConfigOptions, gptOptionsOf } from "./config/gpt-config.js";
export { CRF, type CRFLossOptions, type DecodedTags, type MaskOptions } from "./crf.js";
export { DigitsCnn, type DigitsCnnOptions } from "./digits-cnn.js";
export { GPT, GPTModel, type GPTOptions } from "./gpt.js";
export { Mlp, type MlpOptions } from "./mlp.js";
export {
  ResNet,
  type ResNetOptions,
  resnet18,
  resnet20,
  resnet32,
  resnet44,
  resnet50,
  resnet56,
} from "./resnet.js";
export { UNet, type UNetOptions } from "./unet.js";
