// `node scripts/run-app.mjs APP PROGRAM [arguments]`: runs apps/APP/src/PROGRAM.ts from source.
import { existsSync } from "node:fs";

const [app, program, ...args] = process.argv.slice(2);
if (app === undefined || program === undefined) {
  console.error("Name an app and a program: node scripts/run-app.mjs custom-loop main");
  process.exit(2);
}
if (!existsSync(new URL("../node_modules/esbuild", import.meta.url))) {
  console.error("error: this clone is not set up: run npm run setup at its root, once");
  process.exit(2);
}
const { runApp } = await import("./start/run-app.mjs");
await runApp(app, program, args);
