#!/usr/bin/env node
import { run } from "./run.js";

// `formats … | head` closes the pipe early: that is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});
const { NO_COLOR, FORCE_COLOR } = process.env;
const { stdout, stderr, exitCode } = run(process.argv.slice(2), {
  color: FORCE_COLOR ? FORCE_COLOR !== "0" : process.stdout.isTTY === true && !NO_COLOR,
});
process.stdout.write(stdout);
process.stderr.write(stderr);
process.exitCode = exitCode;
