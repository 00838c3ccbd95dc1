// `npm start -- [flags]`: bundles apps/digits from source and runs it in this process. Bundling takes a second where
// building every package with its type declarations takes minutes; see docs/decisions/0002.
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";
import { bundleApp } from "./start/bundle.mjs";

const app = fileURLToPath(new URL("../apps/digits", import.meta.url));
const main = join(app, "dist", "main.js");
await bundleApp(join(app, "src", "main.ts"), main);

Object.assign(process.env, gpuEnvironment());
process.setSourceMapsEnabled(true);
process.argv[1] = main;
await import(pathToFileURL(main).href);
