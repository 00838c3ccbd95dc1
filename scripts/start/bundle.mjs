import { build } from "esbuild";

/**
 * Bundles an app and the packages of this repository, read from their sources, into one ES module with a source map.
 * What npm installed stays outside and is imported at run time: `webgpu` is a native addon, and Node starts the rest
 * faster than esbuild can copy it.
 * @param {string} entry
 * @param {string} outfile
 */
export const bundleApp = (entry, outfile) =>
  build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: true,
    conditions: ["@halfstep/source"],
    logLevel: "warning",
    plugins: [
      {
        name: "installed-packages-stay-outside",
        setup(build) {
          build.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
            kind === "entry-point" || path.startsWith("@halfstep/")
              ? undefined
              : { path, external: true },
          );
        },
      },
    ],
  });
