// Writes to a disk that has no room for it: node full-disk-process.js file|new|there DIRECTORY. Then it says what is there. With stdout or
// stderr it writes a line to that stream alone.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { program } from "../src/cli/program.js";
import { writeWholeFile } from "../src/files/whole-file.js";
import { writeWholeFolder } from "../src/files/whole-folder.js";

const [what, directory = ""] = process.argv.slice(2);
const large = new Uint8Array(2 ** 20);
const isStream = what === "stdout" || what === "stderr";
await program(async () => {
  if (isStream) process[what].write("a line\n");
  else await fill();
  return 0;
});
if (!isStream) {
  const left = readdirSync(directory).map((name) => [
    name,
    readFileSync(join(directory, name), "utf8"),
  ]);
  process.stdout.write(JSON.stringify(Object.fromEntries(left)));
}

async function fill(): Promise<void> {
  await writeWholeFile(join(directory, "good"), "good");
  if (what === "file") await writeWholeFile(join(directory, "good"), large);
  await writeWholeFolder(join(directory, what === "new" ? "model" : ""), async (folder) => {
    await folder.write("good", "new");
    await folder.write("weights", large);
  });
}
