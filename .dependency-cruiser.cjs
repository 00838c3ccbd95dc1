// The package graph, lowest floor first: a package may import only from the floors below its own.
const floors = [
  ["formats", "grad-scaler", "safetensors"],
  ["autocast", "device", "data"],
  ["kernels"],
  ["tensor", "optim"],
  ["nn", "distributed"],
  ["models"],
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
module.exports = {
  forbidden: [
    ...neighbours,
    {
      name: "no-circular",
      comment: "Cycles of types alone vanish when compiled.",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "no-deep-import",
      severity: "error",
      from: { path: "^(packages|apps)/([^/]+)/" },
      to: {
        path: "^packages/([^/]+)/(src|dist)/(?!(index|node|testing|wgsl|philox|cli)\\.)",
        pathNot: "^packages/$2/",
      },
    },
    {
      name: "webgpu-in-one-place",
      comment:
        "Only @halfstep/device/node imports the webgpu package; the benchmark gives its peers a browser of it.",
      severity: "error",
      from: { pathNot: "^(packages/device/src/node|apps/bench/peers/)" },
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
    exclude: { path: "(^|/)dist/" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["@halfstep/source", "import", "types", "default"],
    },
  },
};
