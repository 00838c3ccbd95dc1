// A Vulkan driver that is Mesa's lavapipe under the vendor and device number of SwiftShader: every call goes to lavapipe.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Function)(void);
typedef Function (*GetAddress)(void *, const char *);

static GetAddress instance_address;
static GetAddress physical_device_address;
static int (*negotiate)(uint32_t *);
static void (*properties_of)(void *, void *);
static void (*properties2_of)(void *, void *);
static void (*properties2_khr_of)(void *, void *);

__attribute__((constructor)) static void load(void) {
  void *library = dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) abort();
  instance_address = (GetAddress)dlsym(library, "vk_icdGetInstanceProcAddr");
  physical_device_address = (GetAddress)dlsym(library, "vk_icdGetPhysicalDeviceProcAddr");
  negotiate = (int (*)(uint32_t *))dlsym(library, "vk_icdNegotiateLoaderICDInterfaceVersion");
}

// VkPhysicalDeviceProperties: apiVersion, driverVersion, vendorID, deviceID.
static void rename_device(uint32_t *properties) {
  properties[2] = 0x1AE0;
  properties[3] = 0xC0DE;
}

// VkPhysicalDeviceProperties2 holds the same after its type and the pointer to the next structure.
static void rename_device2(void *properties) { rename_device((uint32_t *)((char *)properties + 16)); }

static void properties(void *device, void *found) {
  properties_of(device, found);
  rename_device(found);
}
static void properties2(void *device, void *found) {
  properties2_of(device, found);
  rename_device2(found);
}
static void properties2_khr(void *device, void *found) {
  properties2_khr_of(device, found);
  rename_device2(found);
}

static Function wrap(const char *name, Function function) {
  if (!function) return function;
  if (!strcmp(name, "vkGetPhysicalDeviceProperties")) {
    properties_of = (void *)function;
    return (Function)properties;
  }
  if (!strcmp(name, "vkGetPhysicalDeviceProperties2")) {
    properties2_of = (void *)function;
    return (Function)properties2;
  }
  if (!strcmp(name, "vkGetPhysicalDeviceProperties2KHR")) {
    properties2_khr_of = (void *)function;
    return (Function)properties2_khr;
  }
  return function;
}

Function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
  if (!strcmp(name, "vkGetInstanceProcAddr")) return (Function)vk_icdGetInstanceProcAddr;
  return wrap(name, instance_address(instance, name));
}

Function vkGetInstanceProcAddr(void *instance, const char *name) {
  return vk_icdGetInstanceProcAddr(instance, name);
}

Function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
  return physical_device_address ? wrap(name, physical_device_address(instance, name)) : 0;
}

int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
  return negotiate ? negotiate(version) : 0;
}
