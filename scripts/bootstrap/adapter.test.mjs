import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { gpuEnvironment, probeAdapter, readProbe } from "./adapter.mjs";
import { run } from "./run.mjs";

const end = { code: 0, signal: null, stdout: "", stderr: "", timedOut: false };

describe("readProbe", () => {
  it.each([
    [
      "an adapter among a driver's chatter",
      { stdout: 'hello\n{"adapter":"llvmpipe"}\n' },
      { adapter: "llvmpipe" },
    ],
    [
      "none",
      { stdout: '\n{"adapter":null}\n' },
      { reason: "no graphics driver that Dawn accepts" },
    ],
    [
      "a crash",
      { code: null, signal: "SIGSEGV" },
      { reason: "the graphics driver crashed (SIGSEGV)" },
    ],
    [
      "a hang",
      { timedOut: true, signal: "SIGKILL" },
      { reason: "the graphics driver did not answer in time" },
    ],
    [
      "a package that does not load",
      {
        code: 1,
        stderr: "node:internal\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'webgpu'\n",
      },
      {
        reason:
          "the webgpu package does not load: Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'webgpu'",
      },
    ],
  ])("reads %s", (_, change, expected) => {
    expect(readProbe({ ...end, ...change })).toEqual(expected);
  });
});

describe("probeAdapter", () => {
  it("names the adapter of this machine", async () => {
    const { adapter, reason } = await probeAdapter(dirname(fileURLToPath(import.meta.url)));
    expect(reason).toBeUndefined();
    expect(adapter).toMatch(/\S/);
  });
});

describe("gpuEnvironment", () => {
  it("adds nothing that is there already", () => {
    expect(gpuEnvironment({ XDG_RUNTIME_DIR: "/run/user/1", HOME: "/home/a" }, "linux")).toEqual(
      {},
    );
    expect(gpuEnvironment({}, "darwin")).toEqual({});
  });

  it("gives shaders a place where there is no home", () => {
    const added = gpuEnvironment({}, "linux");
    expect(Object.keys(added).sort()).toEqual(["MESA_SHADER_CACHE_DIR", "XDG_RUNTIME_DIR"]);
    expect(added.MESA_SHADER_CACHE_DIR.startsWith(added.XDG_RUNTIME_DIR)).toBe(true);
  });
});

describe("run", () => {
  it("returns status and output of both streams", async () => {
    const result = await run(
      process.execPath,
      ["-e", "console.log(1); console.error(2); process.exit(3)"],
      {
        label: "node",
      },
    );
    expect(result.code).toBe(3);
    expect(result.output.split("\n").sort()).toEqual(["", "1", "2"]);
  });

  it("gives 127 for a command that does not exist", async () => {
    expect((await run("halfstep-no-such-command", [], { label: "x" })).code).toBe(127);
  });
});
