// `node scripts/run-app.mjs APP PROGRAM [arguments]`: runs apps/APP/src/PROGRAM.ts from source.
import { runApp } from "./start/run-app.mjs";

const [app, program, ...args] = process.argv.slice(2);
if (app === undefined || program === undefined) {
  console.error("Name an app and a program: node scripts/run-app.mjs custom-loop main");
  process.exit(2);
}
await runApp(app, program, args);
