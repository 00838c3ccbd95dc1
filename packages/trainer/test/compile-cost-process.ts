// Compiles programs one after another: node compile-cost-process.js PROGRAMS.json. Prints a line for each: its CPU time in seconds,
// and the most memory that the process has had until then.
import { readFileSync } from "node:fs";
import { requestDevice } from "@halfstep/device/node";
import type { CompileCost } from "./compile-cost.js";

const [file = ""] = process.argv.slice(2);
const codes: readonly string[] = JSON.parse(readFileSync(file, "utf8"));
const { gpu } = await requestDevice();
for (const code of codes) {
  const before = process.cpuUsage();
  const module = gpu.createShaderModule({ code });
  await gpu.createComputePipelineAsync({ layout: "auto", compute: { module } });
  const { user, system } = process.cpuUsage(before);
  const cost: CompileCost = {
    seconds: (user + system) / 1e6,
    bytes: process.resourceUsage().maxRSS * 1024,
  };
  process.stdout.write(`${JSON.stringify(cost)}\n`);
}
process.exit(0);
