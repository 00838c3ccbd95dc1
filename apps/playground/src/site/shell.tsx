import type { ComponentChildren, VNode } from "preact";

/** The pages, in the order of the menu. */
const pages = [
  { file: "./", name: "Formats", id: "formats" },
  { file: "./train.html", name: "Train", id: "train" },
  { file: "./inside.html", name: "Inside a step", id: "inside" },
  { file: "./file.html", name: "Your file", id: "file" },
  { file: "./device.html", name: "Your device", id: "device" },
] as const;

/** What names a page. */
type PageId = (typeof pages)[number]["id"];

interface ShellProps {
  readonly page: PageId;
  /** Parts of the address that make no sense to the page. Default: none. */
  readonly strange?: readonly string[];
  readonly children: ComponentChildren;
}

/** The frame that all pages share: the menu above, the page, and where it comes from. */
export function Shell({ page, strange = [], children }: ShellProps): VNode {
  return (
    <>
      <a class="skip" href="#content">
        Skip to the page
      </a>
      <header class="site">
        <a class="brand" href="./">
          <Mark />
          <span>
            Halfstep <em>playground</em>
          </span>
        </a>
        <nav aria-label="Pages">
          {pages.map(({ file, name, id }) => (
            <a key={id} href={file} aria-current={id === page ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main id="content">
        {strange.length > 0 && <StrangeAddress parts={strange} />}
        {children}
      </main>
      <footer class="site">
        <p>
          Everything on these pages is computed in your browser. Nothing is sent, nothing is
          counted. The address holds the state: copy it, and others see what you see.
        </p>
      </footer>
    </>
  );
}

/** Most parts of an address that are named. */
const mostParts = 4;

/** One line for an address that was damaged, or is older than the page. */
function StrangeAddress({ parts }: { parts: readonly string[] }): VNode {
  const rest = parts.length - mostParts;
  return (
    <p class="notice strange" role="status">
      This page does not understand{" "}
      {parts.slice(0, mostParts).map((part, i) => (
        <>
          {i > 0 && ", "}
          <code>
            <bdi>{part}</bdi>
          </code>
        </>
      ))}
      {rest > 0 && ` and ${rest} more`} in its address. It shows what it usually shows instead.
    </p>
  );
}

/** A sign bit, two exponent bits, a longer mantissa. */
function Mark(): VNode {
  return (
    <svg class="mark" viewBox="0 0 30 14" aria-hidden="true">
      <circle class="sign" cx="4" cy="7" r="3.5" />
      <rect class="exponent" x="9.5" y="3.5" width="7" height="7" />
      <rect class="mantissa" x="18.5" y="3.5" width="11" height="7" rx="3.5" />
    </svg>
  );
}
