/** ONNX Runtime on the CPU, against which tests compare. It is installed at the first import. */
export { InferenceSession, Tensor } from "onnxruntime-common";
