import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The cost of compiling a program. */
export interface CompileCost {
  /** CPU time of all threads. */
  readonly seconds: number;
  /** The most memory of the process until it was compiled. */
  readonly bytes: number;
}

/**
 * The costs of compiling programs on the adapter of this environment, in a process of its own, which `program` is the bundle of.
 * They end early where a program takes longer than `limit` seconds, or the process ends.
 */
export async function compileCosts(
  program: string,
  codes: readonly string[],
  limit: number,
): Promise<readonly CompileCost[]> {
  const folder = mkdtempSync(join(tmpdir(), "halfstep-programs-"));
  const file = join(folder, "programs.json");
  writeFileSync(file, JSON.stringify(codes));
  const child = spawn(process.execPath, [program, file], { stdio: ["ignore", "pipe", "inherit"] });
  const stop = (): void => void child.kill("SIGKILL");
  let timer = setTimeout(stop, limit * 1000);
  const costs: CompileCost[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    clearTimeout(timer);
    timer = setTimeout(stop, limit * 1000);
    costs.push(JSON.parse(line));
  }
  clearTimeout(timer);
  rmSync(folder, { recursive: true });
  return costs;
}
