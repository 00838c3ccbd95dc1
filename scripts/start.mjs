// `npm start -- [flags]`: trains the network of apps/digits. Bundling the app from source takes a second, while building
// every package with its type declarations takes minutes; see docs/decisions/0002.
import { runApp } from "./start/run-app.mjs";

await runApp("digits", "main", process.argv.slice(2));
