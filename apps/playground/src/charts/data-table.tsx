import type { ComponentChildren, VNode } from "preact";

interface DataTableProps {
  /** What opens the table. */
  readonly summary: string;
  /** Names the table among others of the page. */
  readonly label: string;
  readonly children: ComponentChildren;
}

/** The numbers of a chart, for those who cannot or do not want to read them off. Wide tables are scrolled by keyboard, too. */
export function DataTable({ summary, label, children }: DataTableProps): VNode {
  return (
    <details>
      <summary>{summary}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled by keyboard */}
      <section class="scroll" tabIndex={0} aria-label={label}>
        <table>{children}</table>
      </section>
    </details>
  );
}
