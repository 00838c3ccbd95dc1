// Each library is loaded when it is asked for.
Object.assign(globalThis, {
  shares: {
    typegpu: async () => (await import("./typegpu.js")).shareWithTypegpu(),
    tfjs: async () => (await import("./tfjs.js")).shareWithTfjs(),
    onnxruntime: async () => (await import("./onnxruntime.js")).shareWithOnnxruntime(),
    three: async () => (await import("./three.js")).shareWithThree(),
  },
});
