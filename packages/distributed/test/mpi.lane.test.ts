import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const packageFolder = fileURLToPath(new URL("..", import.meta.url));
// In the package's own folder, koffi is found; in that of the system it is not.
const bundles = join(packageFolder, "node_modules", ".bundles");
const elsewhere = mkdtempSync(join(tmpdir(), "halfstep-mpi-"));

beforeAll(async () => {
  for (const outdir of [bundles, elsewhere])
    await build({
      entryPoints: ["test/rank-process.ts", "src/mpi/mpi-thread.ts"].map((file) =>
        join(packageFolder, file),
      ),
      entryNames: "[name]",
      outdir,
      ...{ bundle: true, format: "esm", platform: "node", target: "node20" },
      conditions: ["@halfstep/source"],
      external: ["koffi"],
    });
});
afterAll(() => {
  for (const folder of [bundles, elsewhere]) rmSync(folder, { recursive: true });
});

interface Ended {
  readonly code: number | null;
  readonly found: readonly Record<string, unknown>[];
  readonly stderr: string;
  readonly seconds: number;
}

/** Runs a scenario of `rank-process.ts` by a command; what its ranks found, in order. */
function run(
  command: readonly string[],
  scenario: string,
  { env, from = bundles }: { env?: Record<string, string>; from?: string } = {},
): Promise<Ended> {
  const started = performance.now();
  const [file = "", ...args] = [
    ...command,
    process.execPath,
    join(from, "rank-process.js"),
    scenario,
  ];
  const child = spawn(file, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      // Launchers may join the lines of ranks.
      const objects = stdout.match(/\{[^{}]*\}/g) ?? [];
      const found = objects.sort().map((text) => JSON.parse(text) as Record<string, unknown>);
      resolve({ code, found, stderr, seconds: (performance.now() - started) / 1000 });
    });
  });
}

const [openMpi = "mpirun", mpich = "mpiexec"] =
  process.env.HALFSTEP_TEST_LAUNCHERS?.split(",") ?? [];
const launchers = {
  "Open MPI": (ranks: number) => [openMpi, "--oversubscribe", "-n", `${ranks}`],
  MPICH: (ranks: number) => [mpich, "-n", `${ranks}`],
};

for (const [name, launch] of Object.entries(launchers))
  describe(`ranks of ${name}`, () => {
    it("exchange", async () => {
      const { code, found, stderr } = await run(launch(3), "exchange");
      expect(found, stderr).toEqual(
        [0, 1, 2].map((rank) => ({
          ...{
            rank,
            size: 3,
            largest: [2, 0],
            areExact: [true, true, true],
            local: [0, 1, 2],
            peers: [rank],
          },
          bytes: expect.any(Number),
        })),
      );
      expect(code).toBe(0);
    });

    it("run concurrent exchanges one at a time", async () => {
      const { found } = await run(launch(2), "concurrent");
      expect(found).toEqual([{ isRight: true }, { isRight: true }]);
    });

    // Other threads run meanwhile.
    it("overwrite no function of the C library", async () => {
      const { code, found } = await run(launch(2), "functions");
      expect(found).toEqual([{ overwritten: [] }, { overwritten: [] }]);
      expect(code).toBe(0);
    });

    // MPI may have put functions of its own in the place of those of the C library.
    it("keep the library until they end", async () => {
      const { code, found } = await run(launch(2), "afterwards");
      expect(found).toEqual([{ isLoaded: true }, { isLoaded: true }]);
      expect(code).toBe(0);
    });

    it("join once", async () => {
      const { code, found } = await run(launch(2), "twice");
      const message = expect.stringContaining("has joined its job already");
      expect(found).toEqual([
        { during: message, after: message },
        { during: message, after: message },
      ]);
      expect(code).toBe(0);
    });

    it("fail where their buckets are unlike", async () => {
      const { code, stderr } = await run(launch(2), "unlike");
      expect(stderr).not.toContain("done");
      expect(stderr).toMatch(/rank \d: \w*( of )?bucket 3: (ranks average different|MPI_)/);
      expect(code).not.toBe(0);
    });

    it("name the bucket at a deadline, and end the job", async () => {
      const { code, stderr, seconds } = await run(launch(2), "deadline");
      expect(stderr).toContain("rank 0: allGather of bucket 7: no end within 500 ms");
      expect(code).not.toBe(0);
      expect(seconds).toBeLessThan(30);
    });

    it("end the job where one is killed", async () => {
      const { code, stderr } = await run(launch(2), "killed");
      expect(code).not.toBe(0);
      if (name === "Open MPI") expect(stderr).toMatch(/rank 1 .*exited on signal 9/);
    });
  });

describe("joining a job", () => {
  it("of one process needs neither MPI nor koffi", async () => {
    const { found } = await run([], "setup", { from: elsewhere });
    expect(found).toEqual([{ rank: 0, size: 1, isMpi: false }]);
  });

  it("says that koffi is missing, or MPI", async () => {
    const launched = { OMPI_COMM_WORLD_RANK: "0", OMPI_COMM_WORLD_SIZE: "1" };
    const withoutKoffi = await run([], "setup", { from: elsewhere, env: launched });
    expect(withoutKoffi.found).toMatchObject([{ problem: "koffi" }]);
    const withoutMpi = await run([], "setup", {
      env: { ...launched, HALFSTEP_MPI: "libnothing.so" },
    });
    expect(withoutMpi.found).toMatchObject([
      { problem: "mpi", message: expect.stringMatching(/libnothing/) },
    ]);
  });

  it("refuses the library of another launcher", async () => {
    const env = { HALFSTEP_MPI: "libmpich.so.12" };
    const { found } = await run(launchers["Open MPI"](2), "setup", { env });
    expect(found).toMatchObject([
      { problem: "launcher", message: expect.stringMatching(/rank 0 of 2.*MPICH.*rank 0 of 1/) },
      { problem: "launcher", message: expect.stringMatching(/rank 1 of 2/) },
    ]);
  });
});
