import * as fs from "node:fs/promises";
import type { FileSystem } from "../src/files/file-system.js";

/** Told of each operation before it happens; what it throws happens in its place, and what it returns is waited for. */
export type BeforeOperation = (operation: string, path: string) => unknown;

/** Node's file system, with something before each of its operations. */
export const watchedFileSystem = (before: BeforeOperation): FileSystem => {
  const watch =
    <A extends readonly unknown[], R>(
      name: string,
      run: (path: string, ...rest: A) => Promise<R>,
    ) =>
    async (path: string, ...rest: A): Promise<R> => {
      await before(name, path);
      return run(path, ...rest);
    };
  return {
    mkdir: watch("mkdir", fs.mkdir),
    rename: watch("rename", fs.rename),
    rm: watch("rm", fs.rm),
    readdir: watch("readdir", fs.readdir),
    open: watch("open", async (path: string, flags?: string) => {
      const handle = await fs.open(path, flags);
      return new Proxy(handle, {
        get: (target, name) => {
          const member = Reflect.get(target, name);
          if (typeof member !== "function") return member;
          return async (...args: unknown[]) => {
            // A handle that cannot be closed would leak, whatever a test wants.
            if (name !== "close") await before(String(name), path);
            return member.apply(target, args);
          };
        },
      });
    }),
  } as FileSystem;
};

/** An error as the system throws it. */
export const systemError = (code: string, syscall: string): Error =>
  Object.assign(new Error(`${code}: made by a test, ${syscall}`), { code, syscall });
