import { expect, test } from "vitest";
import { openSafetensors, writeSafetensorsFile } from "./node.js";
import { openSafetensorsBlob } from "./open.js";
import { readSafetensors } from "./read.js";
import { writeSafetensors, writeSafetensorsTo } from "./write.js";

test("unknown options are refused", async () => {
  const wrong = { meta: {} } as never;
  const bytes = writeSafetensors({});
  expect(() => writeSafetensors({}, wrong)).toThrow(
    "writeSafetensors: there is no option meta; pass any of metadata",
  );
  expect(() => readSafetensors(bytes, wrong)).toThrow("readSafetensors: there is no option meta");
  expect(() => readSafetensors(bytes, null as never)).toThrow("the options are null");
  const later = [
    () => writeSafetensorsTo({ write: async () => ({ bytesWritten: 0 }) }, {}, wrong),
    () => writeSafetensorsFile("never.safetensors", {}, wrong),
    () => openSafetensorsBlob(new Blob([bytes]), wrong),
    () => openSafetensors(import.meta.filename, wrong),
  ];
  for (const each of later) await expect(each()).rejects.toThrow("there is no option meta");
});
