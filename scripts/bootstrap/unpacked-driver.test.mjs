import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { driverFolder, unpackedDriver } from "./unpacked-driver.mjs";

const debian = { ID: "debian", VERSION_ID: "12" };

describe("driverFolder", () => {
  it("is in the user's cache, one for each release", () => {
    const inHome = driverFolder({ HOME: "/home/a" }, debian);
    expect(inHome).toBe(`/home/a/.cache/halfstep/driver-debian-12-${process.arch}`);
    expect(driverFolder({ HOME: "/home/a", XDG_CACHE_HOME: "/cache" }, { ID: "debian" })).toBe(
      `/cache/halfstep/driver-debian-rolling-${process.arch}`,
    );
    expect(driverFolder({}, debian)).toBeUndefined();
  });
});

describe("unpackedDriver", () => {
  const folder = mkdtempSync(join(tmpdir(), "halfstep-driver-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it("adds nothing before the driver is there", () => {
    expect(unpackedDriver(folder, {})).toEqual({});
    expect(unpackedDriver(undefined, {})).toEqual({});
  });

  it("adds its libraries and its manifest behind those of the system, once", () => {
    const manifests = join(folder, "share", "vulkan", "icd.d");
    mkdirSync(manifests, { recursive: true });
    const library_path = "../../../root/usr/lib/triplet/libvulkan_lvp.so";
    writeFileSync(join(manifests, "lvp_icd.json"), JSON.stringify({ ICD: { library_path } }));
    const libraries = join(folder, "root/usr/lib/triplet");
    const added = unpackedDriver(folder, { LD_LIBRARY_PATH: "/own" });
    expect(added).toEqual({
      LD_LIBRARY_PATH: `/own:${libraries}`,
      XDG_DATA_DIRS: `/usr/local/share:/usr/share:${join(folder, "share")}`,
    });
    expect(unpackedDriver(folder, added)).toEqual({});
  });
});
