// What a page loads, minified and gzipped, by use. Programs are entries of their own; the rest are exports of a package.
const uses = [
  {
    name: "formats: float16 alone",
    path: "packages/formats/dist/index.js",
    import: "{ float16 }",
    limit: "1.95 kB",
  },
  {
    name: "formats: bfloat16 alone",
    path: "packages/formats/dist/index.js",
    import: "{ bfloat16 }",
    limit: "1.95 kB",
  },
  {
    name: "safetensors: the reader alone",
    path: "packages/safetensors/dist/index.js",
    import: "{ readSafetensors }",
    limit: "3.8 kB",
  },
  {
    name: "distributed: exchanges, with conversions",
    path: "packages/distributed/dist/index.js",
    import: "{ DiLoCo, Exchange, inProcess }",
    limit: "15.6 kB",
  },
  {
    name: "distributed: gradients in steps, and shards",
    path: "packages/distributed/dist/index.js",
    import: "{ GradientExchange }",
    limit: "46.2 kB",
  },
  {
    name: "autocast: regions",
    path: "packages/autocast/dist/index.js",
    import: "{ autocast }",
    limit: "0.76 kB",
  },
  { name: "autocast: all", path: "packages/autocast/dist/index.js", limit: "4.2 kB" },
  {
    name: "grad-scaler: the scaler",
    path: "packages/grad-scaler/dist/index.js",
    import: "{ GradScaler }",
    limit: "9.5 kB",
  },
  {
    name: "training an MLP",
    path: "packages/trainer/test/size/mlp-training.ts",
    limit: "144.9 kB",
  },
  {
    name: "training an MLP, gpu-only",
    path: "packages/trainer/test/size/mlp-training.ts",
    conditions: ["@halfstep/gpu-only"],
    limit: "134.4 kB",
  },
  { name: "training a CNN", path: "packages/trainer/test/size/cnn-training.ts", limit: "174.7 kB" },
  {
    name: "training a CNN, gpu-only",
    path: "packages/trainer/test/size/cnn-training.ts",
    conditions: ["@halfstep/gpu-only"],
    limit: "154.9 kB",
  },
  {
    name: "inference of a CNN",
    path: "packages/trainer/test/size/cnn-inference.ts",
    limit: "124.8 kB",
  },
  {
    name: "inference of a CNN, gpu-only and inference-only",
    path: "packages/trainer/test/size/cnn-inference.ts",
    conditions: ["@halfstep/gpu-only", "@halfstep/inference-only"],
    limit: "96.4 kB",
  },
];

export default uses.map(({ conditions, ...use }) => ({
  ...use,
  gzip: true,
  modifyEsbuildConfig: (config) => ({
    ...config,
    format: "esm",
    target: "es2023",
    ...(conditions && { conditions }),
  }),
}));
