import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fakeHosts } from "../../../scripts/fake-hosts/fake-hosts.mjs";
import { bundleProcess } from "./bundle.js";
import { cutLink, killRanks } from "./ranks/kill-ranks.js";

const directory = mkdtempSync(join(tmpdir(), "halfstep-ranks-"));
let program: string;
beforeAll(async () => {
  program = await bundleProcess("ranks/training-rank");
});
afterAll(() => rmSync(directory, { recursive: true }));

const [openMpi = "mpirun", mpich = "mpiexec"] =
  process.env.HALFSTEP_TEST_LAUNCHERS?.split(",") ?? [];
const onOpenMpi = (ranks: number) => [
  openMpi,
  "--oversubscribe",
  "--bind-to",
  "none",
  "-n",
  `${ranks}`,
];

describe("a job that loses a rank", () => {
  it("ends, says which, and goes on with a rank less and with as many", async () => {
    const [kill] = await killRanks({
      ...{ program, directory, kills: 1, ranks: 2, seed: 21, env: {} },
      launch: onOpenMpi,
    });
    expect(kill?.code).not.toBe(0);
    expect(kill).toMatchObject({ isNamed: true, isWhole: true, isEqual: true });
    expect(kill?.survivors.join()).toMatch(/told to end|exchange gradients/);
    // Five on a machine that does nothing else.
    expect(kill?.seconds).toBeLessThan(30);
  });

  // Its launcher names the process and the signal, and no rank.
  it("ends and goes on with MPICH", async () => {
    const [kill] = await killRanks({
      ...{ program, directory: join(directory, "mpich"), kills: 1, ranks: 2, seed: 22, env: {} },
      launch: (ranks) => [mpich, "-n", `${ranks}`],
    });
    expect(kill?.code).not.toBe(0);
    expect(kill).toMatchObject({ isWhole: true, isEqual: true });
    expect(kill?.seconds).toBeLessThan(30);
  });

  it("stops after the same step on all ranks where one is told to, and goes on from it", async () => {
    const [stop] = await killRanks({
      ...{ program, directory: join(directory, "stop"), kills: 1, ranks: 2, seed: 23, env: {} },
      ...{ launch: onOpenMpi, signal: "SIGTERM" },
    });
    expect(stop?.code).not.toBe(0);
    expect(stop).toMatchObject({ isWhole: true, isEqual: true, resumedAt: stop?.lastStep });
  });

  // Needs root: without network namespaces it fails.
  it("ends within its deadline where a link is cut, and names the bucket", async () => {
    const hosts = fakeHosts(2);
    try {
      const { code, stderr, seconds } = await cutLink(
        { program, launch: () => [openMpi, ...hosts.launch], env: hosts.env },
        {
          ...{ out: join(directory, "cut"), notes: join(directory, "cut-notes") },
          ...{ ranks: 2, deadline: 10, cut: () => hosts.cut(2) },
        },
      );
      expect(code).not.toBe(0);
      expect(stderr).toMatch(/rank \d: (told to end during )?all\w+ of bucket/);
      expect(seconds).toBeLessThan(10);
    } finally {
      hosts.close();
    }
  });
});
