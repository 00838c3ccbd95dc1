// Each library is loaded when it is asked for.
Object.assign(globalThis, {
  shares: {
    typegpu: async () => (await import("./typegpu.js")).shareWithTypegpu(),
    tfjs: async () => (await import("./tfjs.js")).shareWithTfjs(),
    onnxruntime: async () => (await import("./onnxruntime.js")).shareWithOnnxruntime(),
    onnxLogits: async (file, inputs) => (await import("./onnx-logits.js")).logitsOf(file, inputs),
    three: async () => (await import("./three.js")).shareWithThree(),
  },
});
