// Tabs of <section data-tab="TITLE">s within [data-tabs]: arrow keys move, the address keeps the place.
// Without this script the sections stand below each other.

export function makeTabs(box, onOpen) {
  const panels = [...box.querySelectorAll(":scope > [data-tab]")];
  const list = document.createElement("div");
  list.className = "tab-list";
  list.setAttribute("role", "tablist");
  const tabs = panels.map((panel) => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `${panel.id}-tab`;
    tab.textContent = panel.dataset.tab;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.removeAttribute("aria-label");
    panel.setAttribute("aria-labelledby", tab.id);
    tab.addEventListener("click", () => open(panel.id));
    list.append(tab);
    return tab;
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = tabs.indexOf(document.activeElement);
    const next = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : at + (step || 0);
    if (at < 0 || next === at && !["Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const tab = tabs[(next + tabs.length) % tabs.length];
    open(tab.getAttribute("aria-controls"));
    tab.focus();
  });

  function open(id) {
    panels.forEach((panel, number) => {
      const isOpen = panel.id === id;
      panel.hidden = !isOpen;
      tabs[number].setAttribute("aria-selected", String(isOpen));
      tabs[number].tabIndex = isOpen ? 0 : -1;
      // Charts are drawn when they have a size.
      if (isOpen) panel.dispatchEvent(new CustomEvent("shown", { bubbles: true }));
    });
    onOpen?.(id);
  }

  box.prepend(list);
  open(panels[0].id);
  return open;
}
