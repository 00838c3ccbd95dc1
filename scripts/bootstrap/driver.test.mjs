import { describe, expect, it } from "vitest";
import { backportsSource, driverPlan, parseOsRelease } from "./driver.mjs";

const debianSources = `Types: deb
# http://snapshot.debian.org/archive/debian/20250520T000000Z
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`;

const bookworm = {
  platform: "linux",
  root: true,
  home: true,
  mayInstall: true,
  apt: true,
  os: { ID: "debian", VERSION_ID: "12", VERSION_CODENAME: "bookworm" },
  sources: ["", debianSources],
};

describe("parseOsRelease", () => {
  it("reads quoted and bare values", () => {
    expect(
      parseOsRelease(
        `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID='12'\nID=debian\n#ID=x\n`,
      ),
    ).toEqual({ PRETTY_NAME: "Debian GNU/Linux 12 (bookworm)", VERSION_ID: "12", ID: "debian" });
  });
});

describe("backportsSource", () => {
  it("keeps mirror and key of the machine's deb822 source", () => {
    expect(backportsSource(["", debianSources], "bookworm")).toEqual({
      extension: "sources",
      text: `Types: deb
URIs: http://mirror.example/debian
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`,
    });
  });

  it("keeps an embedded key with its continuation lines", () => {
    const text = `Types: deb deb-src\nURIs: http://m/\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN PGP\n .\n abc\n -----END PGP\n`;
    expect(backportsSource([text], "bookworm")).toEqual({
      extension: "sources",
      text: `Types: deb\nURIs: http://m/\nSuites: bookworm-backports\nComponents: main\nSigned-By: \n -----BEGIN PGP\n .\n abc\n -----END PGP\n`,
    });
  });

  it("keeps the options of a one-line source", () => {
    const list = `# comment\ndeb-src http://a/debian bookworm main\ndeb [signed-by=/k.gpg arch=amd64] http://a/debian bookworm main non-free\n`;
    expect(backportsSource([list], "bookworm")).toEqual({
      extension: "list",
      text: "deb [signed-by=/k.gpg arch=amd64] http://a/debian bookworm-backports main\n",
    });
  });

  it.each([
    ["deb822", debianSources.replace("bookworm bookworm-updates", "bookworm-backports")],
    ["one-line", "deb http://a/debian bookworm-backports main\n"],
  ])("sees that backports are configured already: %s", (_, text) => {
    expect(backportsSource([debianSources, text], "bookworm")).toEqual({ present: true });
  });

  it("passes over disabled stanzas and foreign repositories", () => {
    const disabled = debianSources.replace("Types: deb\n#", "Enabled: no\nTypes: deb\n#");
    expect(
      backportsSource([disabled, "deb http://x/ nodistro main\n"], "bookworm"),
    ).toBeUndefined();
  });
});

describe("driverPlan", () => {
  it("adds backports on Debian 12", () => {
    const plan = driverPlan(bookworm);
    expect(plan.kind).toBe("install");
    expect(plan.files.map(({ path }) => path)).toEqual([
      "/etc/apt/sources.list.d/halfstep-backports.sources",
    ]);
    expect(plan.commands.map(({ command, args }) => [command, ...args].join(" "))).toEqual([
      "apt-get update",
      "apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 -t bookworm-backports mesa-vulkan-drivers",
    ]);
  });

  it("writes no file where backports are configured already", () => {
    const sources = ["deb http://a/debian bookworm-backports main\n"];
    expect(driverPlan({ ...bookworm, sources }).files).toEqual([]);
  });

  it.each([
    ["Debian 13", { ID: "debian", VERSION_ID: "13" }],
    ["Debian testing, which has no version", { ID: "debian" }],
    ["Ubuntu 24.04", { ID: "ubuntu", ID_LIKE: "debian", VERSION_ID: "24.04" }],
    ["Mint", { ID: "linuxmint", ID_LIKE: "ubuntu debian", VERSION_ID: "22" }],
  ])("installs plainly on %s", (_, os) => {
    const plan = driverPlan({ ...bookworm, os, sources: [] });
    expect(plan.kind).toBe("install");
    expect(plan.files).toEqual([]);
    expect(plan.commands.at(-1).args).not.toContain("-t");
  });

  it("unpacks the driver of the machine's own suite for a user who is not root", () => {
    const plan = driverPlan({ ...bookworm, root: false });
    expect(plan.kind).toBe("unpack");
    expect(plan.release).toBe("bookworm-backports");
    expect(plan.sources).toHaveLength(2);
    expect(plan.sources[0]).toBe(debianSources);
    expect(plan.sources[1]).toContain("Suites: bookworm-backports");
    const trixie = { ...bookworm, root: false, os: { ID: "debian", VERSION_ID: "13" } };
    expect(driverPlan(trixie)).toMatchObject({
      kind: "unpack",
      sources: [debianSources],
      release: "",
    });
  });

  it.each([
    ["a user who is not root and has no home", { root: false, home: false }, "needs root"],
    ["HALFSTEP_NO_INSTALL", { mayInstall: false }, "HALFSTEP_NO_INSTALL"],
    ["Debian 11", { os: { ID: "debian", VERSION_ID: "11" } }, "Debian 12 or newer"],
    ["Debian 12 without a usable source", { sources: [] }, "by hand"],
    ["Fedora", { os: { ID: "fedora" }, apt: false }, "dnf install -y mesa-vulkan-drivers"],
    ["Rocky Linux", { os: { ID: "rocky", ID_LIKE: "rhel fedora" }, apt: false }, "dnf install"],
    ["Arch", { os: { ID: "arch" }, apt: false }, "pacman -S --needed vulkan-swrast"],
    ["Alpine", { os: { ID: "alpine" }, apt: false }, "apk add mesa-vulkan-swrast"],
    ["openSUSE", { os: { ID: "opensuse-leap", ID_LIKE: "suse opensuse" }, apt: false }, "zypper"],
    ["an unknown system", { os: { ID: "void" }, apt: false }, "lavapipe"],
    ["Windows", { platform: "win32" }, "Direct3D 12"],
    ["macOS", { platform: "darwin" }, "Metal"],
  ])("only gives instructions to %s", (_, change, expected) => {
    const plan = driverPlan({ ...bookworm, ...change });
    expect(plan.kind).toBe("instruct");
    expect(plan.instructions[0]).toContain(expected);
  });

  it("spells out the file and the commands for a person to follow", () => {
    const text = driverPlan({ ...bookworm, mayInstall: false }).instructions.join("\n");
    expect(text).toContain("    Suites: bookworm-backports");
    expect(text).toContain("    apt-get install");
  });
});
