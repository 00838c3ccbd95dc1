import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { hostileFields } from "@halfstep/vitest/hostile";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import { StorageError } from "./errors.js";
import { RunLock } from "./run-lock.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "halfstep-lock-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Writes a stale lock. */
const leave = (holder: object): void =>
  writeFileSync(
    join(directory, "run.lock"),
    JSON.stringify({
      host: hostname(),
      began: null,
      since: "2026-01-01",
      token: "another",
      ...holder,
    }),
  );

/** The number of a process that has ended. */
const endedProcess = (): number => spawnSync(process.execPath, ["-e", ""]).pid;

describe("RunLock", () => {
  it("keeps a folder for one, until it is released", () => {
    const lock = new RunLock(directory);
    expect(lock.note).toBeUndefined();
    expect(readdirSync(directory)).toEqual(["run.lock"]);
    expect(() => new RunLock(directory)).toThrow(StorageError);
    expect(() => new RunLock(directory)).toThrow(
      `${directory} cannot be written (process ${process.pid} has been writing to it since`,
    );
    lock.release();
    lock.release();
    expect(readdirSync(directory)).toEqual([]);
    new RunLock(directory).release();
  });

  it("takes over the lock of a process that is gone, and says so", () => {
    const pid = endedProcess();
    leave({ pid });
    const lock = new RunLock(directory);
    expect(lock.note).toBe(
      `${directory} was left locked by process ${pid}, which is gone: taken over`,
    );
    expect(JSON.parse(readFileSync(join(directory, "run.lock"), "utf8")).pid).toBe(process.pid);
    lock.release();
    expect(readdirSync(directory)).toEqual([]);
  });

  it("knows a process that has the number of another", () => {
    leave({ pid: process.pid, began: "1" });
    if (process.platform !== "linux") leave({ pid: endedProcess() });
    new RunLock(directory).release();
  });

  it("leaves the lock of a living process and of another machine alone", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    leave({ pid: child.pid });
    expect(() => new RunLock(directory)).toThrow(`process ${child.pid} has been writing to it`);
    const ended = new Promise((resolve) => child.on("close", resolve));
    child.kill("SIGKILL");
    await ended;
    leave({ pid: 1, host: "elsewhere" });
    expect(() => new RunLock(directory)).toThrow(
      `process 1 on elsewhere has been writing to it since 2026-01-01: choose another folder, or end that run; if it is gone, remove ${join(directory, "run.lock")}`,
    );
    expect(readdirSync(directory)).toEqual(["run.lock"]);
  });

  it("does not guess whose a lock is that does not say", () => {
    const path = join(directory, "run.lock");
    const holder = { pid: 1, host: hostname(), began: null, since: "2026-01-01", token: "another" };
    const isRefused = (): void => {
      expect(() => new RunLock(directory)).toThrow(CheckpointError);
      expect(() => new RunLock(directory)).toThrow(`${path} is a lock that does not say whose`);
    };
    for (const content of [
      "",
      "null",
      "[]",
      "{}",
      "[".repeat(4000),
      `${JSON.stringify(holder)},`,
    ]) {
      writeFileSync(path, content);
      isRefused();
    }
    for (const { field, kind, config } of hostileFields(holder)) {
      const isMeant = field === "began" || kind.endsWith("string") || kind === "a number as text";
      if (isMeant && !kind.includes("long")) continue;
      if ((field === "pid" && kind === "a billion") || (field === "began" && kind === "null"))
        continue;
      writeFileSync(path, JSON.stringify(config));
      isRefused();
    }
    truncateSync(path, 2 ** 33);
    isRefused();
    rmSync(path);
    symlinkSync(join(directory, "nowhere"), path);
    isRefused();
    rmSync(path);
    execFileSync("mkfifo", [path]);
    isRefused();
    expect(readdirSync(directory)).toEqual(["run.lock"]);
  });

  it("is released by its holder alone", () => {
    const lock = new RunLock(directory);
    leave({ pid: 1, host: "elsewhere" });
    lock.release();
    expect(readdirSync(directory)).toEqual(["run.lock"]);
  });
});
