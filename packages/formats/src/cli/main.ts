#!/usr/bin/env node
import { run } from "./run.js";

// `formats … | head` closes the pipe early: that is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});
const { stdout, stderr, exitCode } = run(process.argv.slice(2), {
  color: process.stdout.isTTY === true && !process.env.NO_COLOR,
});
process.stdout.write(stdout);
process.stderr.write(stderr);
process.exitCode = exitCode;
