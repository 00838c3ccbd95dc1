import { fileURLToPath } from "node:url";

const from = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

interface Bundler {
  bundleApp(entry: string, outfile: string): Promise<unknown>;
}

/** Bundles a program of this folder from source, so that Node runs it, and returns where it is. */
export async function bundleProcess(name: string): Promise<string> {
  const { bundleApp }: Bundler = await import(from("../../../scripts/start/bundle.mjs"));
  // Below node_modules, so that what npm installed is found from there.
  const outfile = from(`../node_modules/.cache/${name}.js`);
  await bundleApp(from(`${name}.ts`), outfile);
  return outfile;
}
