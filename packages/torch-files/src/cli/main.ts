#!/usr/bin/env node
import { run } from "./run.js";

const { stdout, stderr } = process;
const { output, error, exitCode } = await run(process.argv.slice(2), (text) => {
  // Only terminals show progress: in a log it would be noise.
  if (stderr.isTTY) stderr.write(text);
});
stdout.write(output);
stderr.write(error);
process.exitCode = exitCode;
