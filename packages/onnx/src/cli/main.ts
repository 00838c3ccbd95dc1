#!/usr/bin/env node
import { run } from "./run.js";

const { output, error, exitCode } = await run(process.argv.slice(2), (line) => {
  process.stderr.write(`${line}\n`);
});
process.stdout.write(output);
process.stderr.write(error);
process.exitCode = exitCode;
