import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { enterGpuEnvironment } from "../bootstrap/adapter.mjs";
import { bundleApp } from "./bundle.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Bundles a program of an app from source and runs it in this process, with the arguments that follow. Data that it trains on
 * is installed when the program asks for it: see `datasetPackage`.
 * @param {string} app a folder of apps/
 * @param {string} program a file of its src/, without extension
 * @param {readonly string[]} args
 */
export const runApp = async (app, program, args) => {
  await enterGpuEnvironment();
  const directory = join(root, "apps", app);
  const bundle = join(directory, "dist", `${program}.js`);
  await bundleApp(join(directory, "src", `${program}.ts`), bundle);
  // npm runs the script of a workspace in its folder, but paths on the command line are relative to the folder in which npm
  // was called.
  const { INIT_CWD, npm_lifecycle_event } = process.env;
  if (npm_lifecycle_event === "start" && INIT_CWD) process.chdir(INIT_CWD);
  process.setSourceMapsEnabled(true);
  process.argv = [process.execPath, bundle, ...args];
  await import(pathToFileURL(bundle).href);
};
