// Loaded before a program: ends it by SIGKILL before the operation of its file system that KILL_AT counts to, from 1. For 0 it says at the
// end how many there were.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const killAt = Number(process.env.KILL_AT);
let operations = 0;
const counted =
  (operation) =>
  (...args) => {
    operations++;
    if (operations === killAt) process.kill(process.pid, "SIGKILL");
    return operation(...args);
  };

const { open } = fs.promises;
fs.promises.open = counted(async (...args) => {
  const handle = await open(...args);
  for (const name of ["write", "sync", "chmod", "close"])
    handle[name] = counted(handle[name].bind(handle));
  return handle;
});
for (const name of ["mkdir", "rename", "rm"]) fs.promises[name] = counted(fs.promises[name]);
syncBuiltinESMExports();
if (killAt === 0) process.on("exit", () => fs.writeSync(2, `${operations} operations\n`));
