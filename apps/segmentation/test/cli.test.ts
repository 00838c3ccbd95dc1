import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runApp } from "@halfstep/vitest/run-app";
import sharp from "sharp";
import { afterAll, expect, it } from "vitest";

const scratch = mkdtempSync(join(tmpdir(), "halfstep-segmentation-"));
afterAll(() => rmSync(scratch, { recursive: true }));

it("a network of own pictures is tested on pictures that are named", {
  timeout: 600_000,
}, async () => {
  const data = join(scratch, "own");
  for (const folder of ["imgs", "masks"]) mkdirSync(join(data, folder), { recursive: true });
  const size = { width: 32, height: 32 } as const;
  for (let i = 0; i < 4; i++) {
    const image = sharp({ create: { ...size, channels: 3, background: "teal" } });
    await image.toFile(join(data, "imgs", `${i}.png`));
    const halves = Uint8Array.from({ length: 32 * 32 }, (_, j) => (j < 512 ? 0 : 255));
    await sharp(halves, { raw: { ...size, channels: 1 } }).toFile(join(data, "masks", `${i}.png`));
  }
  const model = join(scratch, "model");
  const cpu = ["--device", "cpu"];
  const small = ["--scale", "1", "--tile", "16", "--width", "2", "--max-steps", "1"];
  const trained = ["train", "--data", data, ...small, ...cpu, "--out", model];
  expect(await runApp("segmentation", trained)).toMatchObject({ code: 0 });
  const unnamed = await runApp("segmentation", ["evaluate", "--model", model, ...cpu]);
  expect(unnamed).toMatchObject({
    ...{ code: 2, stdout: "" },
    stderr: `error: ${model} was trained on ${data}: name what to test it on by --data\n`,
  });
  const named = ["evaluate", "--model", model, "--data", data, ...cpu];
  expect(await runApp("segmentation", named)).toMatchObject({ code: 0 });
});

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
