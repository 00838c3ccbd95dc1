export { DigitsCnn, type DigitsCnnOptions } from "./digits-cnn.js";
export { GPT, GPTModel, type GPTOptions } from "./gpt.js";
export { Mlp, type MlpOptions } from "./mlp.js";
export { ResNet, type ResNetOptions, resnet18, resnet20, resnet50 } from "./resnet.js";
