import { useEffect, useRef, useState } from "preact/hooks";

/**
 * Takes files that are dropped anywhere on the page, which a browser would open in its place.
 * @returns whether files are over the page now
 */
export function useFileDrop(
  onFiles: (files: ArrayLike<File>) => void,
  onFolder: (name: string) => void,
): boolean {
  const [isOver, setIsOver] = useState(false);
  const handlers = useRef({ onFiles, onFolder });
  handlers.current = { onFiles, onFolder };
  useEffect(() => {
    const onDragOver = (event: DragEvent): void => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setIsOver(true);
    };
    const onDragLeave = ({ relatedTarget }: DragEvent): void => {
      if (relatedTarget === null) setIsOver(false);
    };
    const onDrop = (event: DragEvent): void => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setIsOver(false);
      const { items, files } = event.dataTransfer;
      const entry = items[0]?.webkitGetAsEntry();
      if (entry?.isDirectory) handlers.current.onFolder(entry.name);
      else handlers.current.onFiles(files);
    };
    addEventListener("dragover", onDragOver);
    addEventListener("dragleave", onDragLeave);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onDragOver);
      removeEventListener("dragleave", onDragLeave);
      removeEventListener("drop", onDrop);
    };
  }, []);
  return isOver;
}
