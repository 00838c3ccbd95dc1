import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { build } from "esbuild";
import { writeWhole } from "../whole-file.mjs";

/**
 * Bundles an app and the packages of this repository, read from their sources, into one ES module with a source map. Packages
 * that npm installed are not bundled but imported at run time: `webgpu` is a native addon, and Node loads the others faster
 * than esbuild can copy them. Files appear whole, because an app may start while another process bundles it.
 * @param {string} entry
 * @param {string} outfile
 */
export const bundleApp = async (entry, outfile) => {
  const { outputFiles } = await build({
    write: false,
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
  mkdirSync(dirname(outfile), { recursive: true });
  for (const { path, contents } of outputFiles) {
    writeWhole(path, contents);
  }
};
