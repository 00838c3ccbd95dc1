import { spawn } from "node:child_process";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";

/**
 * Runs a program of Node to its end or its death.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ environment?: Record<string, string>, nodeArgs?: readonly string[], killAfter?: number }} [options] `killAfter` in milliseconds
 */
export function runProgram(program, args, { environment, nodeArgs = [], killAfter } = {}) {
  const child = spawn(process.execPath, [...nodeArgs, program, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...gpuEnvironment(), ...environment },
  });
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const timer = killAfter && setTimeout(() => child.kill("SIGKILL"), killAfter);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stderr });
    });
  });
}
