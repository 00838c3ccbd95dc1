/**
 * Smaller builds of packages, for bundlers with a condition: that of `kernels` under `gpu-only` lies in its `dist/gpu-only`, where
 * `exports` find it under the condition `@halfstep/gpu-only`.
 */
export const variants = {
  device: {
    "gpu-only": {
      substitutes: { "src/driver-compiler.ts": "src/no-driver-compiler.ts" },
    },
  },
  formats: {
    "gpu-only": {
      substitutes: {
        "src/wasm/kernels.ts": "src/wasm/no-kernels.ts",
        "src/wasm/pieces.ts": "src/wasm/no-kernels.ts",
      },
    },
  },
  kernels: {
    "gpu-only": {
      leftOut: {
        // What kernels and formulas are in JavaScript.
        members: ["reference", "evaluate", "evaluateStrip", "run"],
        within: "src",
        replacement: "absentReference",
        from: "src/absent-reference.ts",
        // Programs of software adapters, which then run those of GPUs.
        answers: { isCpu: "false" },
      },
      substitutes: { "src/conv2d/plan-patch.ts": "src/conv2d/no-patches.ts" },
    },
  },
  tensor: {
    "inference-only": {
      leftOut: {
        members: ["backward"],
        within: "src/ops",
        replacement: "absentGradient",
        from: "src/absent-gradient.ts",
      },
      substitutes: {
        "src/ops/batch-norm-training.ts": "src/ops/no-batch-norm-training.ts",
        "src/run/gpu-exchange.ts": "src/run/no-gpu-exchange.ts",
        "src/run/host-calls.ts": "src/run/no-host-calls.ts",
      },
    },
  },
};
