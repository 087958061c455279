// Functions by which the checks of pages look into the browser. Each returns faults, as text for people.
window.outcoreChecks = (() => {
    const OPERATED = 'a, button, input, select, textarea, summary, [onclick], [contenteditable], audio[controls], video[controls]';
    const GROUPS = ['tablist', 'menu', 'listbox', 'radiogroup', 'tree', 'grid', 'toolbar'].map(role => `[role=${role}]`).join();
    const style = element => getComputedStyle(element);
    const everything = () => [...document.body.querySelectorAll('*')];

    const name = element => {
        const text = (element.getAttribute('aria-label') || element.textContent || '').trim().replace(/\s+/g, ' ');
        const kinds = [...element.classList].map(kind => `.${kind}`).join('');
        return `<${element.tagName.toLowerCase()}${kinds}>` + (text ? ` "${text.slice(0, 40)}"` : '');
    };

    // Neither hidden, nor in a box of one pixel for readers of screens.
    const isDrawn = element => {
        const box = element.getBoundingClientRect();
        return box.width > 1 && box.height > 1 && element.checkVisibility({visibilityProperty: true, opacityProperty: true});
    };

    const scrolls = element => [[style(element).overflowX, element.scrollWidth - element.clientWidth],
        [style(element).overflowY, element.scrollHeight - element.clientHeight]]
        .some(([way, more]) => (way === 'auto' || way === 'scroll') && more > 1);

    // Chromium lets the keyboard scroll a part in which nothing else can have the focus; other browsers want a tabindex.
    const isScrolledByKeyboard = element => element.tabIndex >= 0 || element.querySelector(`${OPERATED}, [tabindex]`) !== null;

    // Elements with letters of their own.
    const lettered = () => {
        const elements = new Set();
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const parent = walker.currentNode.parentElement;
            if (walker.currentNode.data.trim() && !parent.closest('title, desc, style, script, noscript, template')) elements.add(parent);
        }
        return [...elements].filter(isDrawn);
    };

    // -- width ------------------------------------------------------------------------------------------------------

    const cutByDrawing = element => {
        const box = element.getBoundingClientRect(), drawing = element.ownerSVGElement.getBoundingClientRect();
        return box.left < drawing.left - 1 || box.right > drawing.right + 1
            || box.top < drawing.top - 1 || box.bottom > drawing.bottom + 1;
    };

    const stickingOut = () => {
        const faults = [], width = document.scrollingElement.clientWidth;
        if (document.scrollingElement.scrollWidth > Math.min(width, innerWidth))
            faults.push(`the page is ${document.scrollingElement.scrollWidth} pixels wide, the window ${innerWidth}`);
        for (const element of everything().filter(isDrawn)) {
            // Shapes of a drawing may be cut at its sides, letters may not.
            if (element instanceof SVGTextContentElement && cutByDrawing(element)) faults.push(`${name(element)} is cut by its drawing`);
            if (element.ownerSVGElement) continue;
            const box = element.getBoundingClientRect();
            let left = 0, right = width, by = 'the window', isHeld = false;
            for (let part = element.parentElement; part && part !== document.body && !isHeld; part = part.parentElement) {
                const way = style(part).overflowX;
                if (way === 'visible') continue;
                isHeld = (way === 'auto' || way === 'scroll') && isScrolledByKeyboard(part);
                const outer = part.getBoundingClientRect();
                if (outer.left > left || outer.right < right) by = name(part);
                [left, right] = [Math.max(left, outer.left), Math.min(right, outer.right)];
            }
            if (!isHeld && (box.left < left - 1 || box.right > right + 1))
                faults.push(`${name(element)} from ${box.left.toFixed()} to ${box.right.toFixed()}, in ${by} to ${right.toFixed()}`);
        }
        return faults;
    };

    // -- keyboard ---------------------------------------------------------------------------------------------------

    let controls = [];

    const look = element => [element, element.parentElement, ...(element.labels || [])].map(part => {
        const {outlineStyle, outlineWidth, outlineColor, boxShadow, borderColor, borderWidth, backgroundColor, textDecorationLine} = style(part);
        const outline = outlineStyle === 'none' ? '' : outlineStyle + outlineWidth + outlineColor;
        return [outline, boxShadow, borderColor, borderWidth, backgroundColor, textDecorationLine].join();
    }).join(';');

    // The hand of the pointer says that a click does something; what is in a label or a control shows the hand of that.
    const pointsAtItself = element => style(element).cursor === 'pointer'
        && style(element.parentElement).cursor !== 'pointer' && !element.closest(`label, ${OPERATED}`);

    // A field may be too small to see where its label is drawn in its place.
    const isSeen = element => element.checkVisibility({visibilityProperty: true})
        && [element, ...(element.labels || [])].some(isDrawn);

    const listControls = () => {
        document.activeElement?.blur();
        scrollTo(0, 0);
        controls = everything()
            .filter(element => !element.disabled && element.type !== 'hidden')
            .filter(element => element.matches(`${OPERATED}, [tabindex]`) || scrolls(element) || pointsAtItself(element))
            .filter(isSeen)
            .map(element => ({element, before: look(element), isReached: false, isShown: false}));
        return controls.length;
    };

    // True where the focus went round to where it began.
    const noteFocus = () => {
        const control = controls.find(({element}) => element === document.activeElement);
        if (!control) return false;
        if (control.isReached) return true;
        control.isReached = true;
        control.isShown = look(control.element) !== control.before;
        return false;
    };

    // Arrows go on from the one that Tab reaches: the fields of a radio group, tabs of a list, items of a menu.
    const group = element => element.type === 'radio' && element.name ? `radio ${element.name}` : element.closest(GROUPS);

    const controlFaults = () => {
        const reached = controls.filter(control => control.isReached).map(control => control.element);
        const groups = new Set(reached.map(group).filter(Boolean));
        const faults = [];
        for (const {element, isReached, isShown} of controls) {
            // A part that only scrolls is scrolled from within, too.
            const isWithin = !element.matches(OPERATED) && scrolls(element) && reached.some(other => element.contains(other));
            if (!isReached && !isWithin && !groups.has(group(element))) faults.push(`${name(element)} is not reached`);
            if (isReached && !isShown) faults.push(`${name(element)} looks the same with the focus`);
        }
        return faults;
    };

    // -- letters ----------------------------------------------------------------------------------------------------

    const smallLetters = least => lettered().filter(element => {
        const matrix = element instanceof SVGGraphicsElement && element.getScreenCTM();
        const scale = matrix ? Math.hypot(matrix.a, matrix.b) : 1;
        return parseFloat(style(element).fontSize) * scale < least - 0.01;
    }).map(name);

    const pixel = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});

    // A colour of a style over another one: red, green and blue.
    const mixed = (colour, opacity, behind) => {
        for (const each of [`rgb(${behind.join()})`, colour]) {
            pixel.fillStyle = each;
            pixel.fillRect(0, 0, 1, 1);
        }
        const [...full] = pixel.getImageData(0, 0, 1, 1).data;
        return behind.map((part, place) => full[place] * opacity + part * (1 - opacity));
    };

    // WCAG 2.2, relative luminance and contrast ratio.
    const luminance = colour => {
        const [red, green, blue] = colour.map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const contrast = (one, other) => {
        const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
        return (light + 0.05) / (dark + 0.05);
    };

    const ancestors = element => element ? [...ancestors(element.parentElement), element] : [];
    const opacity = element => ancestors(element).reduce((product, part) => product * parseFloat(style(part).opacity), 1);

    const paper = () => {
        const probe = document.body.appendChild(document.createElement('div'));
        probe.style.color = 'Canvas';
        const colour = mixed(style(probe).color, 1, [255, 255, 255]);
        probe.remove();
        return colour;
    };

    const covers = (shape, x, y) => {
        const matrix = shape.getScreenCTM();
        return matrix !== null && shape.isPointInFill(new DOMPoint(x, y).matrixTransform(matrix.inverse()));
    };

    // The colour in the middle of letters: boxes around from the page inwards, then shapes that were drawn before.
    const behind = (letters, shapes, page) => {
        const box = letters.getBoundingClientRect();
        const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
        let colour = page;
        for (const part of ancestors(letters.ownerSVGElement)) colour = mixed(style(part).backgroundColor, opacity(part), colour);
        for (const shape of shapes)
            if (shape.compareDocumentPosition(letters) & Node.DOCUMENT_POSITION_FOLLOWING && covers(shape, x, y))
                colour = mixed(style(shape).fill, opacity(shape) * parseFloat(style(shape).fillOpacity), colour);
        return colour;
    };

    const paleLetters = least => {
        const faults = [], page = paper(), filled = new Map();
        for (const drawing of document.querySelectorAll('svg'))
            filled.set(drawing, [...drawing.querySelectorAll('rect, path, circle, ellipse, polygon')]
                .filter(shape => style(shape).fill !== 'none' && isDrawn(shape) && !shape.closest('defs, clipPath, mask, marker')));
        for (const letters of lettered().filter(element => element instanceof SVGTextContentElement)) {
            const under = behind(letters, filled.get(letters.ownerSVGElement), page);
            const ink = mixed(style(letters).fill, opacity(letters) * parseFloat(style(letters).fillOpacity), under);
            const ratio = contrast(ink, under);
            if (ratio < least) faults.push(`${name(letters)} has ${ratio.toFixed(2)} : 1`);
        }
        return faults;
    };

    // -- the page as a whole ----------------------------------------------------------------------------------------

    const unfold = () => document.querySelectorAll('details').forEach(part => { part.open = true; });

    const visibleText = () => {
        const drawn = [...document.querySelectorAll('svg text')].filter(part => part.checkVisibility()).map(part => part.textContent);
        return [document.body.innerText, ...drawn].join('\n');
    };

    const openingMilliseconds = () => {
        const [visit] = performance.getEntriesByType('navigation'), paints = performance.getEntriesByType('paint');
        return Math.max(visit.loadEventEnd, ...paints.map(paint => paint.startTime));
    };

    return {stickingOut, listControls, noteFocus, controlFaults, smallLetters, paleLetters, unfold, visibleText, openingMilliseconds};
})();
