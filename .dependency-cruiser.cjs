// The package graph, lowest floor first: a package may import only from the floors below its own.
const floors = [
  ["formats", "grad-scaler", "safetensors"],
  ["autocast", "device", "data", "torch-files"],
  ["kernels"],
  ["tensor", "optim"],
  ["nn", "distributed"],
  ["models", "onnx"],
  ["trainer"],
];
const neighbours = floors.flatMap((floor, index) =>
  floor.map((name) => {
    const allowed = floors.slice(0, index).flat().concat(name);
    return {
      name: `${name}-stays-on-its-floor`,
      comment: `${name} may import only from the floors below it: ${floors.slice(0, index).flat().join(", ") || "none"}.`,
      severity: "error",
      from: { path: `^packages/${name}/src`, pathNot: "\\.test(-d)?\\.ts$" },
      to: { path: "^packages/", pathNot: `^packages/(${allowed.join("|")})/` },
    };
  }),
);
// The rooms of tensor, lowest first, each with the rooms that it may import from: types count, so that no circle crosses a room.
const rooms = {
  arguments: [],
  record: [],
  plan: ["record"],
  run: ["record", "plan"],
  autograd: ["record", "arguments"],
  dispatch: ["record", "arguments", "autograd"],
  ops: ["record", "arguments", "autograd", "dispatch"],
  backward: ["record", "arguments", "autograd", "dispatch", "ops"],
  tensor: ["record", "plan", "run", "arguments", "autograd", "dispatch", "ops", "backward"],
  contract: ["record", "plan", "run", "ops", "backward", "tensor"],
};
// A tensor has its ops as methods, and ops take tensors: what methods are made of knows tensors and runtimes by their types.
const madeOfMethods = ["arguments", "autograd", "dispatch", "ops", "backward"];
// Ops and backward passes bring the passes that transform their launches: a program bundles the passes of what it calls.
const bringers = ["ops", "backward"];
const tensorRoom = "^packages/tensor/src/tensor/(tensor|runtime)\\.ts$";
// Entries that one package or none is meant for, and the files besides that import them, each with a reason.
const innerEntries = [
  {
    entry: "kernels/src/planner",
    of: ["packages/kernels/", "packages/tensor/"],
    // A checkpoint names the table of blocks, by which a resumed run knows whether bits repeat.
    also: ["packages/trainer/src/start-run\\.ts$"],
  },
  {
    entry: "tensor/src/internals",
    of: ["packages/tensor/"],
    also: [
      // They plan steps with passes left out, and compare.
      "packages/trainer/test/",
      "apps/digits/test/cost\\.lane\\.test\\.ts$",
      // It translates traces, whose ops it identifies by their definitions.
      "packages/onnx/src/export/",
    ],
  },
].map(({ entry, of, also }) => ({
  name: `${entry.replace("/src/", "-")}-is-inner`,
  comment: `${entry} is an entry for ${of.join(" and ")}: say at innerEntries why another file imports it.`,
  severity: "error",
  from: { pathNot: [...of, ...also].map((path) => `^${path}`) },
  to: { path: `^packages/${entry}\\.ts$` },
}));
const beneathRooms = "^packages/tensor/src/(dtypes|errors|shapes)\\.ts$";
const tests = "\\.test(-d)?\\.ts$";
const roomRules = Object.entries(rooms).map(([room, known]) => ({
  name: `tensor-${room}-stays-in-its-room`,
  comment: `${room}/ of tensor may import only from ${known.join(", ") || "no other room"}.`,
  severity: "error",
  from: { path: `^packages/tensor/src/${room}/`, pathNot: tests },
  to: {
    path: "^packages/tensor/src/",
    pathNot: [
      `^packages/tensor/src/(${[room, ...known].join("|")})/`,
      beneathRooms,
      ...(madeOfMethods.includes(room) ? [tensorRoom] : []),
      ...(bringers.includes(room) ? ["^packages/tensor/src/plan/passes/"] : []),
    ],
  },
}));
// Circles of types that are left. A file that is out of them stays out: take it off this list.
const circlesOfTypes = [
  "^packages/kernels/src/(cpu|kernel|weave-accumulation|elementwise|forms)\\.ts$",
  "^packages/kernels/src/conv2d/(depthwise|grouped)\\.ts$",
  "^packages/kernels/src/matmul/(block-table|measured-blocks)\\.ts$",
  "^packages/tensor/src/record/(half-copies|storage)\\.ts$",
  "^packages/tensor/src/(arguments|autograd|dispatch|ops|backward|tensor)/",
  "^packages/nn/src/(intercept|module|torch-layout)\\.ts$",
  "^packages/trainer/src/(hyperparameters|start-run|train|training-run)\\.ts$",
  "^apps/language-model/src/tokenizers/",
];
module.exports = {
  forbidden: [
    ...neighbours,
    ...roomRules,
    ...innerEntries,
    {
      name: "tensors-by-type",
      comment:
        "What the methods of tensors are made of knows tensors and runtimes by their types alone.",
      severity: "error",
      from: { path: `^packages/tensor/src/(${madeOfMethods.join("|")})/`, pathNot: tests },
      to: { path: tensorRoom, dependencyTypesNot: ["type-only"] },
    },
    {
      name: "beneath-rooms",
      comment: "What every room of tensor may import imports from no room.",
      severity: "error",
      from: { path: beneathRooms },
      to: { path: "^packages/tensor/src/[^/]+/" },
    },
    {
      name: "plans-from-data",
      comment: "Plans are made of recordings, and runs of plans; neither knows who records.",
      severity: "error",
      from: { path: "^packages/tensor/src/(plan|run)/", pathNot: tests },
      to: { path: "^packages/tensor/src/record/recorder\\.ts$" },
    },
    {
      name: "passes-know-graphs",
      comment: "A pass knows graphs and lifetimes, not the pipeline that it is in.",
      severity: "error",
      from: { path: "^packages/tensor/src/plan/passes/", pathNot: tests },
      to: {
        path: "^packages/tensor/src/plan/[^/]+\\.ts$",
        pathNot: "^packages/tensor/src/plan/(graph|assign-memory)\\.ts$",
      },
    },
    {
      name: "no-circular",
      comment: "Circles of types alone vanish when compiled: the next rule looks at those.",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "no-circular-types",
      severity: "error",
      from: { pathNot: circlesOfTypes },
      to: { circular: true },
    },
    {
      name: "no-deep-import",
      severity: "error",
      from: { path: "^(packages|apps)/([^/]+)/" },
      to: {
        path: "^packages/([^/]+)/(src|dist)/(?!(index|node|testing|wgsl|philox|dtypes|cli|optimizers|amp|planner|functional|internals|report|browser|file-kind)\\.)",
        pathNot: "^packages/$2/",
      },
    },
    {
      name: "webgpu-in-one-place",
      comment:
        "Only @halfstep/device/node imports the webgpu package; the benchmark gives its peers a browser of it, and peers in pages have entries of that name.",
      severity: "error",
      from: {
        pathNot:
          "^(packages/device/src/node|apps/bench/peers/|packages/trainer/test/browser/peers/)",
      },
      to: { path: "(^|/)webgpu(/|$)", pathNot: "^(packages|apps)/" },
    },
    {
      name: "no-undeclared",
      severity: "error",
      from: { path: "^packages/[^/]+/src", pathNot: "\\.test(-d)?\\.ts$" },
      // peerDependenciesMeta makes an optional peer look undeclared, and types are no run-time dependency.
      to: {
        dependencyTypes: ["npm-no-pkg", "npm-unknown"],
        dependencyTypesNot: ["npm-peer", "triple-slash-type-reference"],
      },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    // A build beside this check writes a bundled configuration for a moment.
    exclude: { path: "(^|/)dist/|\\.config\\.bundled_" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["@halfstep/source", "import", "types", "default"],
    },
  },
};
