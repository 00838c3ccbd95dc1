import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, expect, it } from "vitest";

const scratch = mkdtempSync(join(tmpdir(), "halfstep-segmentation-"));
afterAll(() => rmSync(scratch, { recursive: true }));

it("what cannot be done is refused in one line", { timeout: 600_000 }, async () => {
  const refused = await runApp("segmentation", [
    "train",
    "--tile",
    "256",
    "--out",
    join(scratch, "large"),
  ]);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toMatch(/error: 180° W to 112\.5° W: is 192×512 pixels, and tiles are/);
  const photo = join(scratch, "photo.png");
  writeFileSync(photo, "a photo");
  const over = await runApp("segmentation", ["predict", photo, "-o", photo, "--device", "cpu"]);
  expect(over).toMatchObject({ code: 2, stdout: "" });
  expect(over.stderr).toBe(
    `error: the mask of ${photo} would replace the picture ${photo}: name another file by -o\n`,
  );
  expect(readFileSync(photo, "utf8")).toBe("a photo");
});
