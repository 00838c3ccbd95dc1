import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";
import { bundleApp } from "./bundle.mjs";

/**
 * Bundles a program of an app from source and runs it in this process, with the arguments that follow.
 * @param {string} app a folder of apps/
 * @param {string} program a file of its src/, without extension
 * @param {readonly string[]} args
 */
export const runApp = async (app, program, args) => {
  const directory = fileURLToPath(new URL(`../../apps/${app}`, import.meta.url));
  const bundle = join(directory, "dist", `${program}.js`);
  await bundleApp(join(directory, "src", `${program}.ts`), bundle);
  Object.assign(process.env, gpuEnvironment());
  process.setSourceMapsEnabled(true);
  process.argv = [process.execPath, bundle, ...args];
  await import(pathToFileURL(bundle).href);
};
