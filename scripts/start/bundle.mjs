import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
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
  const { inputs, files } = await bundle(entry, outfile);
  // The thread of MPI is a file of its own beside the program.
  const thread = inputs.some((path) => path.endsWith("distributed/src/mpi/init.ts"))
    ? (await bundle(mpiThread, join(dirname(outfile), "mpi-thread.js"))).files
    : [];
  mkdirSync(dirname(outfile), { recursive: true });
  for (const { path, contents } of [...files, ...thread]) writeWhole(path, contents);
};

const mpiThread = fileURLToPath(
  new URL("../../packages/distributed/src/mpi/mpi-thread.ts", import.meta.url),
);

async function bundle(entry, outfile) {
  const { outputFiles, metafile } = await build({
    write: false,
    metafile: true,
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
  return { inputs: Object.keys(metafile.inputs), files: outputFiles };
}
