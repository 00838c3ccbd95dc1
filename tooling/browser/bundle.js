import { basename } from "node:path";
import { build } from "esbuild";

export const bundlePage = async (entries) => {
  const { outputFiles } = await build({
    entryPoints: [...entries],
    entryNames: "[name]",
    outdir: "/",
    write: false,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    target: "es2023",
    conditions: ["@halfstep/source"],
    logLevel: "warning",
  });
  return Object.fromEntries(
    outputFiles.map(({ path, contents }) => [`/${basename(path)}`, contents]),
  );
};
